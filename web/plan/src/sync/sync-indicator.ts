/**
 * Describes the database's status in words: a short label for the pill, a sentence or two, and
 * what the user can do about it. Pure: the status goes in, texts come out.
 */
import type {
  DatabaseStatus,
  ErrorCode,
  ErrorInfo,
  ServerLoss,
  SyncProgress,
} from "@warren/client";
import { describeAgo } from "../data/dates.js";

export type StatusTone = "quiet" | "ok" | "busy" | "warn" | "bad";
export type SyncRemedy = "signUp" | "signIn" | "phrase" | "begin" | "retry" | "export";

export interface SyncIndicator {
  readonly tone: StatusTone;
  readonly label: string;
  readonly detail: string;
  /** The progress from 0 to 1, if it is known. */
  readonly fraction?: number;
  readonly remedy?: SyncRemedy;
}

/** Describes a status; `login` is the owner of these items, also while signed out. */
export function syncIndicator(
  status: DatabaseStatus,
  nowMs: number,
  login?: string,
): SyncIndicator {
  const { sync, unsentCount } = status;
  switch (sync.phase) {
    case "local":
      return localStanding(status, login);
    case "inSync":
      if (status.serverLoss !== undefined) return lossStanding(status.serverLoss, nowMs);
      return {
        tone: "ok",
        label: "Synced",
        detail: `All changes are saved on the server.${ago(status, nowMs)}`,
      };
    case "pending":
      return { tone: "busy", label: "Saving…", detail: "Your changes will sync in a moment." };
    case "syncing":
      return syncing(sync.progress);
    case "offline":
      return {
        tone: "warn",
        label: unsentCount === 0 ? "Offline" : `Offline · ${count(unsentCount)} to sync`,
        detail: `Can’t reach the server. You can keep working: ${
          unsentCount === 0 ? "your changes" : changes(unsentCount)
        } will sync when the connection is back.`,
        remedy: "retry",
      };
    case "failed":
      return failed(sync.error, status);
  }
}

/** The maximum number of devices to name that may have the changes the server has lost. */
const DEVICES_NAMED_MAX = 3;

function lossStanding(
  { repairedMs, missingCount: lost, devicesAway }: ServerLoss,
  nowMs: number,
): SyncIndicator {
  const what = lost === undefined ? "an unknown number of changes" : changes(lost);
  const since = describeAgo(repairedMs, nowMs);
  const names = devicesAway.slice(0, DEVICES_NAMED_MAX);
  const more = devicesAway.length - names.length;
  const named = [...names, ...(more > 0 ? [`${count(more)} more`] : [])].join(", ");
  const allSynced =
    lost === undefined
      ? "Open Plan on each device that may have changes the others are missing."
      : "All known devices have synced since then, and none of them had these changes.";
  const who =
    devicesAway.length === 0
      ? allSynced
      : `Devices that haven’t synced since then may still have them: ${named}. Open Plan there.`;
  return {
    tone: "warn",
    label: "Changes missing",
    detail: `The server lost ${what} to a damaged disk (${since}). ${who}`,
  };
}

function localStanding(status: DatabaseStatus, login: string | undefined): SyncIndicator {
  if (login !== undefined) {
    return {
      tone: "warn",
      label: "Signed out",
      detail: `${login}’s items are still on this device. Sign in to sync them again.`,
      remedy: "signIn",
    };
  }
  if (status.storage === "memory") {
    return {
      tone: "warn",
      label: "Not saved permanently",
      detail:
        "This browser isn’t saving data permanently (private window?). Items are lost when you " +
        "close the last tab, unless you create an account.",
      remedy: "signUp",
    };
  }
  return {
    tone: "quiet",
    label: "Only on this device",
    detail:
      "Your items are saved on this device. Create an account to sync them to your other devices.",
    remedy: "signUp",
  };
}

function syncing(progress: SyncProgress | undefined): SyncIndicator {
  const detail = "Syncing changes.";
  if (progress?.stage === "applied") {
    return { tone: "busy", label: `Applied ${changes(progress.done)}`, detail };
  }
  if (progress === undefined || progress.total === 0) {
    return { tone: "busy", label: "Syncing…", detail };
  }
  return {
    tone: "busy",
    label: `Syncing ${count(progress.done)} / ${count(progress.total)}`,
    detail: progress.stage === "sent" ? "Uploading your changes." : "Downloading items.",
    fraction: Math.min(1, progress.done / progress.total),
  };
}

interface SyncFailureText {
  readonly label: string;
  readonly detail: string;
  readonly remedy: SyncRemedy;
}

const WRONG_PHRASE: SyncFailureText = {
  label: "Wrong recovery phrase",
  detail: "The recovery phrase on this device doesn’t match your items.",
  remedy: "phrase",
};

/** The meaning of error codes in words for users, and what the user can do. */
const FAILURES: Readonly<Partial<Record<ErrorCode, SyncFailureText>>> = {
  account_not_encrypted: {
    label: "Wrong account?",
    detail: "Your items are end-to-end encrypted, but this account isn’t. Nothing was sent.",
    remedy: "retry",
  },
  clock_drift: {
    label: "Check your clock",
    detail: "Your device’s clock is wrong. Correct it and try again.",
    remedy: "retry",
  },
  disk_full: {
    label: "Storage full",
    detail:
      "There’s no space left on this device. Free up some space, and export your items to be safe.",
    remedy: "export",
  },
  encryption_undecided: {
    label: "Not synced yet",
    detail: "This account is empty. Choose how to set it up before syncing.",
    remedy: "begin",
  },
  invalid_token: {
    label: "Signed out",
    detail:
      "This device was signed out. Your items are still here. Sign in again to sync; if your " +
      "password was changed, use the new one.",
    remedy: "signIn",
  },
  recovery_phrase_in_use: WRONG_PHRASE,
  recovery_phrase_required: {
    label: "Enter your phrase",
    detail: "Your items are end-to-end encrypted. Enter your recovery phrase to see them here.",
    remedy: "phrase",
  },
  recovery_phrase_unverified: {
    label: "Can’t check phrase yet",
    detail:
      "Your recovery phrase can’t be checked because the account is still empty. Open Plan on " +
      "the device where you created the phrase.",
    remedy: "begin",
  },
  wrong_password: {
    label: "Sign in again",
    detail: "Your password was changed. Sign in with the new one.",
    remedy: "signIn",
  },
  wrong_recovery_phrase: WRONG_PHRASE,
};

function failureText({ code, message }: ErrorInfo): SyncFailureText {
  if (code === "quota_exceeded") {
    const detail = `${sentence(message)} Ask the server’s administrator for more space.`;
    return { label: "Account is full", detail, remedy: "retry" };
  }
  const unknown = `${sentence(message)} (${code})`;
  const known = Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined;
  return known ?? { label: "Sync failed", detail: unknown, remedy: "retry" };
}

function failed(error: ErrorInfo, status: DatabaseStatus): SyncIndicator {
  const { label, detail, remedy } = failureText(error);
  const { unsentCount } = status;
  const are = unsentCount === 1 ? "is" : "are";
  const waiting =
    unsentCount === 0 ? "" : ` ${changes(unsentCount)} ${are} saved here and will sync later.`;
  return { tone: "bad", label, detail: detail + waiting, remedy };
}

function ago({ lastSyncedMs }: DatabaseStatus, nowMs: number): string {
  return lastSyncedMs === undefined ? "" : ` Last synced ${describeAgo(lastSyncedMs, nowMs)}.`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** Returns a number with its noun: "1 item", "2 items". */
export function counted(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

function changes(value: number): string {
  return counted(value, "change");
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/**
 * How the database stands, in the words of the screen: a short label for the pill, a sentence or
 * two, and what the user can do about it. Pure: the status goes in, texts come out.
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
  /** 0 to 1, where it is known. */
  readonly fraction?: number;
  readonly remedy?: SyncRemedy;
}

/** `login`: whose items these are, also while nobody is signed in. */
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
        detail: `The server has everything${ago(status, nowMs)}.`,
      };
    case "pending":
      return { tone: "busy", label: "Saving…", detail: "Changes are about to be sent." };
    case "syncing":
      return syncing(sync.progress);
    case "offline":
      return {
        tone: "warn",
        label: unsentCount === 0 ? "Offline" : `Offline, ${count(unsentCount)} unsent`,
        detail: `The server cannot be reached. You can go on: ${
          unsentCount === 0 ? "what you change" : changes(unsentCount)
        } will be sent when it is back.`,
        remedy: "retry",
      };
    case "failed":
      return failed(sync.error, status);
  }
}

/** Names that are shown of the devices that may have what the server has lost. */
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
  const nobody =
    lost === undefined
      ? "Open Plan on each device that may have changes which others lack."
      : "All devices that the server knows have synced since, and none of them had these.";
  const who =
    devicesAway.length === 0
      ? nobody
      : `Devices that have not synced since may have them: ${named}. Open Plan there.`;
  return {
    tone: "warn",
    label: "Changes missing",
    detail: `A damaged disk has cost the server ${what} (${since}). ${who}`,
  };
}

function localStanding(status: DatabaseStatus, login: string | undefined): SyncIndicator {
  if (login !== undefined) {
    return {
      tone: "warn",
      label: "Signed out",
      detail: `The items of ${login} stay on this device. Sign in to sync them again.`,
      remedy: "signIn",
    };
  }
  if (status.storage === "memory") {
    return {
      tone: "warn",
      label: "Not saved",
      detail:
        "This browser gives no lasting storage here (a private window?). What you enter is gone " +
        "when you close the last tab. With an account it is kept on the server.",
      remedy: "signUp",
    };
  }
  return {
    tone: "quiet",
    label: "On this device only",
    detail:
      "Your items are saved on this device. With an account they are on your other devices, too.",
    remedy: "signUp",
  };
}

function syncing(progress: SyncProgress | undefined): SyncIndicator {
  const detail = "Changes go back and forth.";
  if (progress?.stage === "applied") {
    return { tone: "busy", label: `Sorting in ${count(progress.done)}`, detail };
  }
  if (progress === undefined || progress.total === 0) {
    return { tone: "busy", label: "Syncing…", detail };
  }
  return {
    tone: "busy",
    label: `Syncing ${count(progress.done)} / ${count(progress.total)}`,
    detail: progress.stage === "sent" ? "Your changes are being sent." : "Items are arriving.",
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
  detail: "The phrase on this device is not the one your items are encrypted with.",
  remedy: "phrase",
};

/** What a code means to people, and what they can do. */
const FAILURES: Readonly<Partial<Record<ErrorCode, SyncFailureText>>> = {
  account_not_encrypted: {
    label: "Not your account?",
    detail:
      "The server says that this account is not encrypted from end to end, but your items here " +
      "are. Nothing was sent.",
    remedy: "retry",
  },
  clock_drift: {
    label: "Check the clock",
    detail: "This device’s clock is wrong. Set it right, then try again.",
    remedy: "retry",
  },
  disk_full: {
    label: "This device is full",
    detail:
      "There is no room left to save on this device. Free some; to be safe, export your items.",
    remedy: "export",
  },
  encryption_undecided: {
    label: "Not synced yet",
    detail: "This account has no items yet. Say whether it is new, before anything is sent.",
    remedy: "begin",
  },
  invalid_token: {
    label: "Signed out",
    detail:
      "This device was signed out, so it no longer syncs. Your items stay here. Sign in to " +
      "sync them again, with the new password if it was changed.",
    remedy: "signIn",
  },
  recovery_phrase_in_use: WRONG_PHRASE,
  recovery_phrase_required: {
    label: "Recovery phrase needed",
    detail:
      "Your items are encrypted from end to end. Enter the recovery phrase to read them here.",
    remedy: "phrase",
  },
  recovery_phrase_unverified: {
    label: "Nothing opens yet",
    detail:
      "There is nothing on the server yet that your recovery phrase opens. Open Plan on the " +
      "device that made it.",
    remedy: "begin",
  },
  wrong_password: {
    label: "Sign in again",
    detail: "The password was changed. Sign in with the new one.",
    remedy: "signIn",
  },
  wrong_recovery_phrase: WRONG_PHRASE,
};

function failureText({ code, message }: ErrorInfo): SyncFailureText {
  if (code === "quota_exceeded") {
    const detail = `The server takes no more: ${message}. Ask its operator for more room.`;
    return { label: "Account is full", detail, remedy: "retry" };
  }
  const unknown = `${sentence(message)} (${code})`;
  const known = Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined;
  return known ?? { label: "Sync failed", detail: unknown, remedy: "retry" };
}

function failed(error: ErrorInfo, status: DatabaseStatus): SyncIndicator {
  const { label, detail, remedy } = failureText(error);
  const { unsentCount } = status;
  const waiting = unsentCount === 0 ? "" : ` ${changes(unsentCount)} wait here, none is lost.`;
  return { tone: "bad", label, detail: detail + waiting, remedy };
}

function ago({ lastSyncedMs }: DatabaseStatus, nowMs: number): string {
  return lastSyncedMs === undefined ? "" : `, as of ${describeAgo(lastSyncedMs, nowMs)}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** "1 item", "2 items". */
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

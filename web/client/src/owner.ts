/**
 * The owner's side: takes the tabs' calls, answers them, tells all tabs what changed and how the
 * database stands, and notices when a tab is gone.
 *
 * Invariant: an answer is said only after what it answers for is committed.
 */
import type { ErrorInfo, SyncReport, SyncState } from "./api.js";
import { answers } from "./answers.js";
import type { Answered, CallName } from "./calls.js";
import type { Clock } from "./clock.js";
import type { Replica } from "./engine.js";
import { errorInfo, isTrap } from "./errors.js";
import { VERSION } from "./messages.js";
import type { Call, OwnStatus, ToAll, ToOwner, ToTab } from "./messages.js";
import { transfersOf } from "./packed.js";
import { readStatus, type Read } from "./standing.js";
import { statements } from "./statements.js";
import { syncing } from "./syncing.js";

/** How often, at most, all tabs are told how far a sync is. */
const PROGRESS_MS_MIN = 50;
/** Until the file is asked how it stands after a change; many changes come in a row. */
const STANDING_MS = 30;

export interface OwnerParts {
  readonly replica: Replica;
  /** Its worker's name. */
  readonly id: string;
  readonly storage: OwnStatus["storage"];
  readonly warning?: string;
  readonly clock: Clock;
  say(tab: string, message: ToTab, transfer: readonly ArrayBuffer[]): void;
  tell(message: ToAll): void;
  /** Calls when the tab is gone. */
  watch(tab: string, onGone: () => void): void;
  /** The wasm module is not to be trusted any more. */
  broken(error: ErrorInfo): void;
}

export interface Owner {
  take(message: ToOwner): void;
  /** Says who it is, and how the database stands. */
  announce(): void;
  online(): void;
  /** These tabs live; what was noted for others goes. */
  keepNotesOf(tabs: readonly string[]): void;
  /** Rolls back what is open, and stops the syncs; the file may be closed then. */
  stop(): void;
}

export function owner(parts: OwnerParts): Owner {
  const { replica, clock, id } = parts;
  const tabs = new Map<string, Map<number, AbortController>>();
  const isBroken = { value: false };
  const standing = keepStanding(parts);

  const sync = syncing({
    clock,
    sync: async (onProgress, signal) => {
      const report = await replica.sync((stage, done, total) => {
        wrote();
        onProgress({ stage, done, total });
      }, signal);
      return JSON.parse(report) as SyncReport;
    },
    listen: (onState, signal) => replica.listen(onState, signal),
    standing: () => standing.read().standing,
    setState: (state) => standing.setSync(state),
    synced() {
      wrote();
      standing.refresh();
    },
  });

  const runs = statements({
    replica,
    clock,
    holdSyncs: sync.hold,
    isAlive: (tab) => tabs.has(tab),
    wrote: () => {
      if (wrote()) {
        changedHere();
      }
    },
  });

  const calls = answers({
    replica,
    statements: runs,
    syncing: sync,
    stands: () => standing.refresh(),
    wrote: () => {
      wrote();
      changedHere();
    },
    progress: (tab, number, progress) => {
      parts.say(tab, { kind: "progress", from: id, number, progress }, []);
    },
  });

  /** Tells which tables were written to, if any. */
  function wrote(): boolean {
    const changed = replica.takeChanged();
    if (changed.length > 0) {
      parts.tell({ kind: "changed", tables: changed });
    }
    return changed.length > 0;
  }

  let cancelRefresh: (() => void) | undefined;
  function changedHere(): void {
    cancelRefresh ??= clock.after(STANDING_MS, () => {
      cancelRefresh = undefined;
      guarded(() => {
        standing.refresh();
        sync.changed();
      });
    });
  }

  function guarded(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      noticeTrap(thrown);
    }
  }

  function noticeTrap(thrown: unknown): boolean {
    if (isTrap(thrown) && !isBroken.value) {
      isBroken.value = true;
      parts.broken(errorInfo(thrown));
    }
    return isBroken.value;
  }

  function callsOf(tab: string): Map<number, AbortController> {
    const known = tabs.get(tab);
    if (known !== undefined) {
      return known;
    }
    const calls = new Map<number, AbortController>();
    tabs.set(tab, calls);
    parts.watch(tab, () => forget(tab));
    return calls;
  }

  function forget(tab: string): void {
    tabs.get(tab)?.forEach((call) => call.abort());
    tabs.delete(tab);
    guarded(() => runs.abandon(tab));
  }

  async function answer(call: Call, underWay: Map<number, AbortController>): Promise<void> {
    const cancel = new AbortController();
    underWay.set(call.number, cancel);
    try {
      const value = await dispatch(call, cancel.signal);
      const message: ToTab = { kind: "answer", from: id, number: call.number, value };
      parts.say(call.tab, message, transfersOf(value));
    } catch (thrown) {
      // The next owner is asked what a broken one did not answer.
      if (!noticeTrap(thrown)) {
        const error = errorInfo(thrown);
        parts.say(call.tab, { kind: "error", from: id, number: call.number, error }, []);
      }
    } finally {
      underWay.delete(call.number);
    }
  }

  function dispatch<K extends CallName>(
    call: Call,
    signal: AbortSignal,
  ): Answered<CallName> | Promise<Answered<CallName>> {
    type Work = (call: Call, signal: AbortSignal) => Answered<K> | Promise<Answered<K>>;
    // The table has for each name a function of that name's calls.
    return (calls[call.name] as Work)(call, signal);
  }

  return {
    take(message) {
      if (isBroken.value) {
        return;
      }
      const underWay = callsOf(message.tab);
      if (message.kind === "cancel") {
        underWay.get(message.number)?.abort();
      } else if (!underWay.has(message.number)) {
        void answer(message, underWay);
      }
    },
    announce() {
      parts.tell({ kind: "owner", owner: id, version: VERSION });
      standing.tell();
    },
    online: sync.online,
    keepNotesOf: (living) => runs.keepNotesOf(living),
    stop() {
      cancelRefresh?.();
      sync.stop();
      if (!isBroken.value) {
        runs.abandon();
      }
    },
  };
}

interface KeptStanding {
  read(): Read;
  refresh(): void;
  setSync(state: SyncState): void;
  tell(): void;
}

/** What the file said last of how it stands, and what the tabs were told of it. */
function keepStanding(parts: OwnerParts): KeptStanding {
  const { replica, clock, id, storage, warning } = parts;
  let read = readStatus(replica);
  let sync: SyncState = { phase: "local" };
  let told = "";
  let toldMs = 0;

  function status(): OwnStatus {
    return { storage, ...(warning === undefined ? {} : { warning }), ...read.file, sync };
  }

  function tell(): void {
    const now = status();
    told = JSON.stringify(now);
    toldMs = clock.now();
    parts.tell({ kind: "status", owner: id, status: now });
  }

  function tellChange(): void {
    if (JSON.stringify(status()) !== told) {
      tell();
    }
  }

  return {
    read: () => read,
    refresh() {
      read = readStatus(replica);
      tellChange();
    },
    setSync(state) {
      const isProgress = state.phase === "syncing" && sync.phase === "syncing";
      sync = state;
      if (!isProgress || clock.now() - toldMs >= PROGRESS_MS_MIN) {
        tellChange();
      }
    },
    tell,
  };
}

/**
 * The owner's side: takes the tabs' calls, answers them, tells all tabs what changed and how the
 * database stands, and notices when a tab is gone.
 *
 * Invariant: an answer is said only after what it answers for is committed.
 */
import type { ErrorInfo, Progress, SyncState } from "./api.js";
import { answers } from "./answers.js";
import type { Answered, CallName } from "./calls.js";
import type { Clock } from "./clock.js";
import type { OpenFile } from "./file.js";
import { errorInfo, isTrap } from "./errors.js";
import { inTurns, lane, taking } from "./lane.js";
import { VERSION } from "./messages.js";
import type { Call, OwnStatus, ToAll, ToOwner, ToTab } from "./messages.js";
import { reaching } from "./origins.js";
import { transfersOf } from "./packed.js";
import { explained } from "./room.js";
import { readStatus, type FileStatus } from "./standing.js";
import { statements } from "./statements.js";
import { syncing } from "./syncing.js";

/** Calls that wait for their turn; each tab has a smaller bound of its own. */
const CALLS_WAITING_MAX = 50_000;
/** How often, at most, all tabs are told how far a sync is. */
const PROGRESS_MS_MIN = 50;
/** Until the file is asked how it stands after a change; many changes come in a row. */
const STANDING_MS = 50;

export interface OwnerParts {
  readonly file: OpenFile;
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
  /** Rolls back what is open, and ends the syncs; the file may be closed then. */
  stop(): Promise<void>;
}

export function owner(parts: OwnerParts): Owner {
  const { file, clock, id } = parts;
  const tabs = new Map<string, Map<number, AbortController>>();
  let isBroken = false;
  let hasStopped = false;
  const standing = keepStanding(parts);
  const turns = lane(CALLS_WAITING_MAX);

  const sync = syncing({
    clock,
    async sync(onProgress, signal) {
      const tell = (progress: Progress): void => {
        wrote();
        onProgress(progress);
      };
      try {
        const synced = inTurns(turns, (mine) => file.sync(tell, signal, mine));
        const report = await reaching(standing.read().told.account?.server, synced);
        standing.addLost(report.lost);
        return report;
      } catch (thrown) {
        noticeTrap(thrown);
        throw thrown;
      }
    },
    listen: (onState, signal) => taking(turns, (mine) => file.listen(onState, signal, mine)),
    standing: () => standing.read().standing,
    setState: (state) => standing.setSync(state),
    synced() {
      wrote();
      standing.refresh();
    },
  });

  const runs = statements({
    file,
    clock,
    turns,
    isAlive: (tab) => tabs.has(tab),
    wrote: () => {
      if (wrote()) {
        changedHere();
      }
    },
  });

  const calls = answers({
    file,
    turns,
    statements: runs,
    syncing: sync,
    stands: () => standing.refresh(),
    wrote: () => {
      wrote();
      changedHere();
    },
    rekeyed: (key) => parts.tell({ kind: "rekeyed", key }),
    progress: (tab, number, progress) => {
      parts.say(tab, { kind: "progress", from: id, number, progress }, []);
    },
  });

  /** Tells which tables were written to, if any. */
  function wrote(): boolean {
    const changed = file.takeChanged();
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
    if (isTrap(thrown) && !isBroken) {
      isBroken = true;
      parts.broken(errorInfo(thrown));
    }
    return isBroken;
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
      // What a broken owner, or one that has stopped, did not answer, the next one is asked.
      if (!noticeTrap(thrown) && !hasStopped) {
        const error = await explained(thrown);
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
      if (isBroken || hasStopped) {
        // The next owner is asked.
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
    async stop() {
      hasStopped = true;
      cancelRefresh?.();
      if (isBroken) {
        return;
      }
      runs.abandon();
      await sync.stop();
    },
  };
}

interface KeptStanding {
  read(): FileStatus;
  refresh(): void;
  setSync(state: SyncState): void;
  addLost(count: number): void;
  tell(): void;
}

/** What the file said last of how it stands, and what the tabs were told of it. */
function keepStanding(parts: OwnerParts): KeptStanding {
  const { file, clock, id, storage, warning } = parts;
  let read = readStatus(file);
  let sync: SyncState = { phase: "local" };
  let lost = 0;
  let told = "";
  let toldMs = 0;

  function status(): OwnStatus {
    return { storage, ...(warning === undefined ? {} : { warning }), ...read.told, lost, sync };
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
      read = readStatus(file);
      tellChange();
    },
    setSync(state) {
      const isProgress = state.phase === "syncing" && sync.phase === "syncing";
      sync = state;
      if (!isProgress || clock.now() - toldMs >= PROGRESS_MS_MIN) {
        tellChange();
      }
    },
    addLost(count) {
      lost += count;
    },
    tell,
  };
}

/**
 * The live queries of one tab: each runs again when a table that it reads was written to, and its
 * subscriber is called only if the rows differ from the last ones.
 *
 * Invariant: a query never runs twice at the same time; if tables change while it runs, it runs
 * again afterwards.
 */
import type { RowOf, Unsubscribe } from "../api.js";
import { WarrenError } from "../api.js";
import type { ReadResult, SqlStatement } from "../shared/rpc-methods.js";
import type { PackedRows } from "../shared/wasm-engine.js";
import { toWarrenError } from "../shared/errors.js";
import { reportUncaught } from "./observable.js";
import { equalRows, unpack } from "../shared/packed-rows.js";

export interface LiveQueries {
  subscribe<T extends RowOf<T>>(
    statement: SqlStatement,
    onRows: (rows: readonly T[]) => void,
    onError?: (error: WarrenError) => void,
  ): Unsubscribe;
  /** Runs the queries again that read these tables. */
  changed(tables: readonly string[]): void;
  /** Runs all queries again, since the tables that were written to are unknown. */
  changedAll(): void;
  end(): void;
}

interface LiveSubscription {
  readonly statement: SqlStatement;
  readonly publish: (packed: PackedRows) => void;
  readonly fail: (error: WarrenError) => void;
  /** The tables that the query read; unknown before it has run, and after it has failed. */
  tables: ReadonlySet<string> | undefined;
  published: PackedRows | undefined;
  isRunning: boolean;
  isStale: boolean;
}

export function createLiveQueries(
  read: (statement: SqlStatement) => Promise<ReadResult>,
): LiveQueries {
  const all = new Set<LiveSubscription>();

  async function run(live: LiveSubscription): Promise<void> {
    live.isStale = true;
    if (live.isRunning) {
      return;
    }
    live.isRunning = true;
    while (live.isStale && all.has(live)) {
      live.isStale = false;
      await runOnce(live);
    }
    live.isRunning = false;
  }

  async function runOnce(live: LiveSubscription): Promise<void> {
    try {
      const { packed, tables } = await read(live.statement);
      live.tables = new Set(tables.map((table) => table.toLowerCase()));
      const isNew = live.published === undefined || !equalRows(live.published, packed);
      live.published = packed;
      if (isNew && all.has(live)) {
        live.publish(packed);
      }
    } catch (thrown) {
      live.tables = undefined;
      if (all.has(live)) {
        live.fail(toWarrenError(thrown));
      }
    }
  }

  return {
    subscribe<T extends RowOf<T>>(
      statement: SqlStatement,
      onRows: (rows: readonly T[]) => void,
      onError: (error: WarrenError) => void = reportUncaught,
    ) {
      const live: LiveSubscription = {
        statement,
        publish: (packed) => guarded(() => onRows(unpack<T>(packed))),
        fail: (error) => guarded(() => onError(error)),
        tables: undefined,
        published: undefined,
        isRunning: false,
        isStale: false,
      };
      all.add(live);
      void run(live);
      return () => void all.delete(live);
    },
    changed(tables) {
      const names = tables.map((table) => table.toLowerCase());
      for (const live of all) {
        if (live.tables === undefined || names.some((name) => live.tables?.has(name))) {
          void run(live);
        }
      }
    },
    changedAll() {
      all.forEach((live) => void run(live));
    },
    end: () => all.clear(),
  };
}

/** Runs a subscriber's function: its error must not become the query's. */
function guarded(work: () => void): void {
  try {
    work();
  } catch (thrown) {
    reportUncaught(thrown);
  }
}

/** Hooks for React (and Preact, via `preact/compat`): live rows, and the database's status. */
import { useCallback, useMemo, useRef, useSyncExternalStore } from "react";
import type { LiveQuery, Observable, RowOf, SqlValue, WarrenError } from "./api.js";

export interface LiveRows<T extends RowOf<T>> {
  /** The rows, or an empty list until the first result arrives. */
  readonly rows: readonly T[];
  readonly isLoading: boolean;
  /** Whether the rows are still those of the previous parameters. */
  readonly isStale: boolean;
  readonly error?: WarrenError;
}

/**
 * Returns the rows of a live query. The query may be created again at each rendering: the hook
 * subscribes again only when its text or a parameter differs. If only parameters change, the
 * previous rows stay until the new ones arrive.
 *
 * @example
 * const { rows } = useLive(db.live<Note>`SELECT id, text FROM note WHERE list = ${list}`);
 */
export function useLive<T extends RowOf<T>>(query: LiveQuery<T>): LiveRows<T> {
  const key = keyOf(query);
  // Queries with the same key are interchangeable, so any of them will do.
  const latest = useRef(query);
  latest.current = query;
  const lastPublished = useRef<PublishedRows<T>>(undefined);
  const store = useMemo(() => liveStore(latest.current, lastPublished), [key]);
  return useSyncExternalStore(store.subscribe, store.read, store.read);
}

/** Returns the present value of an observable, such as `db.status`. */
export function useObservable<T>(source: Observable<T>): T {
  const subscribe = useCallback((onChange: () => void) => source.subscribe(onChange), [source]);
  const read = (): T => source.value;
  return useSyncExternalStore(subscribe, read, read);
}

interface ExternalStore<T> {
  subscribe(onChange: () => void): () => void;
  read(): T;
}

/** The rows that were published last, and the SQL text of their query. */
interface PublishedRows<T> {
  readonly sql: string;
  readonly rows: readonly T[];
}

function liveStore<T extends RowOf<T>>(
  query: LiveQuery<T>,
  lastPublished: { current: PublishedRows<T> | undefined },
): ExternalStore<LiveRows<T>> {
  const { sql } = query;
  const before = lastPublished.current?.sql === sql ? lastPublished.current : undefined;
  const isStale = before !== undefined;
  let state: LiveRows<T> = { rows: before?.rows ?? [], isLoading: !isStale, isStale };
  return {
    read: () => state,
    subscribe: (onChange) =>
      query(
        (rows) => {
          lastPublished.current = { sql, rows };
          state = { rows, isLoading: false, isStale: false };
          onChange();
        },
        (error) => {
          state = { ...state, isLoading: false, error };
          onChange();
        },
      ),
  };
}

function keyOf(query: { readonly sql: string; readonly parameters: readonly SqlValue[] }): string {
  const parameters = query.parameters.map((value) =>
    value instanceof Uint8Array ? `x${value.join()}` : `${typeof value} ${String(value)}`,
  );
  return JSON.stringify([query.sql, parameters]);
}

/** Hooks for React (and Preact, by `preact/compat`): live rows, and how the database stands. */
import { useCallback, useMemo, useRef, useSyncExternalStore } from "react";
import type { LiveQuery, Observable, RowOf, SqlValue, WarrenError } from "./api.js";

export interface LiveRows<T extends RowOf<T>> {
  /** Empty until they are there. */
  readonly rows: readonly T[];
  readonly isLoading: boolean;
  /** Whether the rows are those of the parameters before these, until these have been answered. */
  readonly isStale: boolean;
  readonly error?: WarrenError;
}

/**
 * The rows of a live query. The query may be made anew at each rendering: it is subscribed to again
 * only when its text or a parameter is another. Where only parameters change, the rows that there
 * were stay until there are others.
 *
 * @example
 * const { rows } = useLive(db.live<Note>`SELECT id, text FROM note WHERE list = ${list}`);
 */
export function useLive<T extends RowOf<T>>(query: LiveQuery<T>): LiveRows<T> {
  const key = keyOf(query);
  // The query with this key; others with it are the same.
  const latest = useRef(query);
  latest.current = query;
  const told = useRef<PublishedRows<T>>(undefined);
  const store = useMemo(() => liveStore(latest.current, told), [key]);
  return useSyncExternalStore(store.subscribe, store.read, store.read);
}

/** The present value of something that changes, such as `db.status`. */
export function useObservable<T>(source: Observable<T>): T {
  const subscribe = useCallback((tell: () => void) => source.subscribe(tell), [source]);
  const read = (): T => source.value;
  return useSyncExternalStore(subscribe, read, read);
}

interface ExternalStore<T> {
  subscribe(tell: () => void): () => void;
  read(): T;
}

/** The rows that were told last, and of which text. */
interface PublishedRows<T> {
  readonly sql: string;
  readonly rows: readonly T[];
}

function liveStore<T extends RowOf<T>>(
  query: LiveQuery<T>,
  told: { current: PublishedRows<T> | undefined },
): ExternalStore<LiveRows<T>> {
  const { sql } = query;
  const before = told.current?.sql === sql ? told.current : undefined;
  const isStale = before !== undefined;
  let state: LiveRows<T> = { rows: before?.rows ?? [], isLoading: !isStale, isStale };
  return {
    read: () => state,
    subscribe: (tell) =>
      query(
        (rows) => {
          told.current = { sql, rows };
          state = { rows, isLoading: false, isStale: false };
          tell();
        },
        (error) => {
          state = { ...state, isLoading: false, error };
          tell();
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

/** Hooks for React (and Preact, by `preact/compat`): live rows, and how the database stands. */
import { useCallback, useMemo, useRef, useSyncExternalStore } from "react";
import type { LiveQuery, Observable, Row, WarrenError } from "./api.js";

export interface LiveRows<T extends Row> {
  /** Empty until they are there. */
  readonly rows: readonly T[];
  readonly isLoading: boolean;
  readonly error?: WarrenError;
}

/**
 * The rows of a live query. The query may be made anew at each rendering: it is subscribed to again
 * only when its text or a parameter is another.
 *
 * @example
 * const { rows } = useLive(db.live<Note>`SELECT id, text FROM note WHERE list = ${list}`);
 */
export function useLive<T extends Row>(query: LiveQuery<T>): LiveRows<T> {
  const key = keyOf(query);
  // The query with this key; others with it are the same.
  const latest = useRef(query);
  latest.current = query;
  const store = useMemo(() => liveStore(latest.current), [key]);
  return useSyncExternalStore(store.subscribe, store.read, store.read);
}

/** The present value of something that changes, such as `db.status`. */
export function useObservable<T>(source: Observable<T>): T {
  const subscribe = useCallback((tell: () => void) => source.subscribe(tell), [source]);
  const read = (): T => source.value;
  return useSyncExternalStore(subscribe, read, read);
}

interface Store<T> {
  subscribe(tell: () => void): () => void;
  read(): T;
}

function liveStore<T extends Row>(query: LiveQuery<T>): Store<LiveRows<T>> {
  let state: LiveRows<T> = { rows: [], isLoading: true };
  return {
    read: () => state,
    subscribe: (tell) =>
      query(
        (rows) => {
          state = { rows, isLoading: false };
          tell();
        },
        (error) => {
          state = { rows: state.rows, isLoading: false, error };
          tell();
        },
      ),
  };
}

function keyOf(query: LiveQuery<Row>): string {
  const parameters = query.parameters.map((value) =>
    value instanceof Uint8Array ? `x${value.join()}` : `${typeof value} ${String(value)}`,
  );
  return JSON.stringify([query.sql, parameters]);
}

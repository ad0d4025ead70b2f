/**
 * Hooks for the screens: rows, the database's status, the window, and the time.
 */
import type { WarrenDatabase, RowOf, DatabaseStatus } from "@warren/client";
import { useObservable } from "@warren/client/react";
import { useEffect, useRef, useState } from "preact/hooks";
import { dayOf } from "../data/dates.js";
import type { CurrentDay, SqlQuery } from "../data/views.js";

export interface LiveQueryRows<T extends RowOf<T>> {
  readonly rows: readonly T[];
  /** The query that these rows answer: until a new query is answered, the last one's rows stay. */
  readonly query: SqlQuery;
}

/** Returns the rows of a query, and updates them on changes; `undefined` without a query. */
export function useRows<T extends RowOf<T>>(
  db: WarrenDatabase,
  query: SqlQuery | undefined,
): LiveQueryRows<T> | undefined {
  const [answer, setAnswer] = useState<LiveQueryRows<T>>();
  const key = query && JSON.stringify([query.sql, query.parameters]);
  useEffect(() => {
    if (query !== undefined)
      return db.liveQuery<T>(query.sql, query.parameters)((rows) => setAnswer({ rows, query }));
    setAnswer(undefined);
    return undefined;
  }, [db, key]);
  return answer;
}

/** Returns the database's status: storage, account, and the state of the sync. */
export function useStatus(db: WarrenDatabase): DatabaseStatus {
  return useObservable(db.status);
}

/** Whether a media query matches. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = (): void => setMatches(media.matches);
    update();
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return matches;
}

export const PHONE = "(max-width: 767px)";
/** Matches devices on which a finger is the only pointer. */
export const TOUCH = "(hover: none) and (pointer: coarse)";
/** Matches screens with enough width for the item next to the list. */
export const WIDE = "(min-width: 1080px)";

/** Returns today; it changes at midnight, and is checked again when the page is shown. */
export function useNow(): CurrentDay {
  const [now, setNow] = useState(readNow);
  useEffect(() => {
    const update = (): void =>
      setNow((before) => (before.today === dayOf(new Date()) ? before : readNow()));
    const timer = setInterval(update, 60_000);
    document.addEventListener("visibilitychange", update);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", update);
    };
  }, []);
  return now;
}

function readNow(): CurrentDay {
  const time = new Date();
  const midnight = new Date(time.getFullYear(), time.getMonth(), time.getDate());
  return { today: dayOf(time), midnightMs: midnight.getTime() };
}

/** Returns the milliseconds since 1970, updated at this interval. */
export function useClock(everyMs: number): number {
  const [time, setTime] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setTime(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return time;
}

/** Returns a reference to the latest value, for listeners that are set up once. */
export function useLatest<T>(value: T): { readonly current: T } {
  const ref = useRef(value);
  ref.current = value;
  return ref;
}

/** The state of a call, for buttons that wait and forms that show errors. */
export interface AsyncTask<E> {
  readonly isBusy: boolean;
  readonly error: E | undefined;
  readonly run: (work: () => Promise<void>) => void;
}

/** Runs calls, and returns the state of the latest one until the component is unmounted. */
export function useTask(): AsyncTask<unknown> {
  const [state, setState] = useState<{ isBusy: boolean; error: unknown }>({
    isBusy: false,
    error: undefined,
  });
  const isMounted = useRef(true);
  useEffect(() => () => void (isMounted.current = false), []);
  const run = (work: () => Promise<void>): void => {
    setState({ isBusy: true, error: undefined });
    work().then(
      () => isMounted.current && setState({ isBusy: false, error: undefined }),
      (error: unknown) => isMounted.current && setState({ isBusy: false, error }),
    );
  };
  return { ...state, run };
}

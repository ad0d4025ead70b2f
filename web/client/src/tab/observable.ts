/** A value that is listened to, by one after the other; a listener that throws stops nobody. */
import type { Observable, Unsubscribe } from "../api.js";

export interface WritableObservable<T> extends Observable<T> {
  set(value: T): void;
}

export function observable<T>(first: T): WritableObservable<T> {
  const listeners = new Set<(value: T) => void>();
  let value = first;
  const tell = (listener: (value: T) => void): void => {
    try {
      listener(value);
    } catch (thrown) {
      reportUncaught(thrown);
    }
  };
  return {
    get value() {
      return value;
    },
    set(next) {
      value = next;
      [...listeners].forEach(tell);
    },
    subscribe(listener): Unsubscribe {
      // Its own function, so that one listener subscribed twice is two.
      const own = (next: T): void => listener(next);
      listeners.add(own);
      tell(own);
      return () => void listeners.delete(own);
    },
  };
}

/** A listener's fault is its page's: told where uncaught errors are told. */
export function reportUncaught(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

/**
 * An observable value: it calls its listeners one after the other, and a listener that throws does
 * not stop the others.
 */
import type { Observable, Unsubscribe } from "../api.js";

export interface WritableObservable<T> extends Observable<T> {
  set(value: T): void;
}

export function observable<T>(first: T): WritableObservable<T> {
  const listeners = new Set<(value: T) => void>();
  let value = first;
  const notify = (listener: (value: T) => void): void => {
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
      [...listeners].forEach(notify);
    },
    subscribe(listener): Unsubscribe {
      // A function of its own, so that one listener subscribed twice counts as two.
      const own = (next: T): void => listener(next);
      listeners.add(own);
      notify(own);
      return () => void listeners.delete(own);
    },
  };
}

/** Reports a listener's error as an uncaught error of the page. */
export function reportUncaught(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

/**
 * Layers over the page, which going back closes: with the browser's button or a phone's gesture.
 *
 * - Each layer has an entry in the history, above the page's own. Going back closes the topmost.
 * - A layer that closes on its own leaves its entry behind: a step back would happen later, and
 *   revert what the user does next. The next layer reuses the entry, {@link navigate} replaces it
 *   with a page, and going back skips it.
 */
import { useLayoutEffect } from "preact/hooks";
import { useLatest } from "./hooks.js";

interface ClosableLayer {
  /** Closes the layer; left out if it cannot be closed now. */
  readonly close: (() => void) | undefined;
}

const layers: { readonly current: ClosableLayer }[] = [];

/** The number of the layers' entries up to and including the present one. */
let depth = 0;

/**
 * Closes the layer when the user goes back, while the component is mounted and `isOpen` is true.
 */
export function useLayer(close: (() => void) | undefined, isOpen = true): void {
  const layer = useLatest({ close });
  // A layout effect, because the user may go back before anything is painted.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    layers.push(layer);
    if (depth < layers.length) addEntry();
    return () => remove(layer);
  }, [isOpen]);
}

/** Goes to another address within the page, as a link does. */
export function navigate(hash: string): void {
  stay();
  if (depth === 0) {
    location.hash = hash;
    return;
  }
  depth = 0;
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

interface EntryState {
  readonly layers: number;
}

function depthOf(state: unknown): number | undefined {
  return (state as Partial<EntryState> | null)?.layers;
}

function addEntry(): void {
  stay();
  // The page's own entry is marked, too: following a link to it is not going back.
  if (depth === 0) history.replaceState({ layers: 0 } satisfies EntryState, "");
  depth += 1;
  history.pushState({ layers: depth } satisfies EntryState, "");
}

function remove(layer: { readonly current: ClosableLayer }): void {
  const at = layers.indexOf(layer);
  if (at >= 0) layers.splice(at, 1);
}

/**
 * The delays, in milliseconds, after which a step back is requested: Chromium ignores a request
 * that comes before it has finished the step that led here. A repeated request leads to the same
 * entry.
 */
const STEPS_BACK_MS = [0, 100, 400];
let stepsBack: readonly number[] = [];

function passOver(): void {
  stepsBack = STEPS_BACK_MS.map((delayMs) => window.setTimeout(() => history.back(), delayMs));
}

function stay(): void {
  for (const timer of stepsBack) clearTimeout(timer);
  stepsBack = [];
}

/** Closes layers when the user goes back; called once. */
export function closeLayersOnBack(): void {
  depth = depthOf(history.state) ?? 0;
  // A page restored from the back/forward cache would otherwise continue these steps.
  addEventListener("pagehide", stay);
  window.addEventListener("popstate", (event) => {
    stay();
    const before = depth;
    const reached = depthOf(event.state);
    depth = reached ?? 0;
    if (depth >= before) return;
    const top = layers.at(-1);
    if (top === undefined) {
      // Entries without layers are skipped.
      if (reached !== undefined) passOver();
      return;
    }
    do closeTopmost();
    while (layers.length > depth && layers.at(-1)?.current.close !== undefined);
    while (depth < layers.length) addEntry();
  });
}

function closeTopmost(): void {
  const close = layers.at(-1)?.current.close;
  if (close === undefined) return;
  layers.pop();
  close();
}

/**
 * What lies over the page, so that the way back closes it: the browser's button, a phone's gesture.
 *
 * - Each layer has an entry in the history, above the page's own. Going back closes the topmost.
 * - A layer that closes by itself leaves its entry behind: a step back would come later, and take
 *   back what the user does next. The next layer uses it again, {@link navigate} puts a page in
 *   its place, and going back passes over it.
 */
import { useLayoutEffect } from "preact/hooks";
import { useLatest } from "./hooks.js";

interface ClosableLayer {
  /** Left out: it cannot be closed now. */
  readonly close: (() => void) | undefined;
}

const layers: { readonly current: ClosableLayer }[] = [];

/** How many entries for layers are under the present one, itself among them. */
let depth = 0;

/** Closes the layer on the way back, for as long as the component is there and this is wanted. */
export function useLayer(close: (() => void) | undefined, isOpen = true): void {
  const layer = useLatest({ close });
  // At once: the way back may be taken before anything is painted.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    layers.push(layer);
    if (depth < layers.length) addEntry();
    return () => remove(layer);
  }, [isOpen]);
}

/** To another address within the page, as a link goes there. */
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
  // The page's own entry is marked, too: a link that leads here is not the way back.
  if (depth === 0) history.replaceState({ layers: 0 } satisfies EntryState, "");
  depth += 1;
  history.pushState({ layers: depth } satisfies EntryState, "");
}

function remove(layer: { readonly current: ClosableLayer }): void {
  const at = layers.indexOf(layer);
  if (at >= 0) layers.splice(at, 1);
}

/**
 * When a step back is asked for, in milliseconds: Chromium ignores one that comes before it is
 * through with the step that led here. One that is asked for again leads to the same entry.
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

/** Called once. */
export function closeLayersOnBack(): void {
  depth = depthOf(history.state) ?? 0;
  // A page that comes back from the browser's cache would go on with them.
  addEventListener("pagehide", stay);
  window.addEventListener("popstate", (event) => {
    stay();
    const before = depth;
    const reached = depthOf(event.state);
    depth = reached ?? 0;
    if (depth >= before) return;
    const top = layers.at(-1);
    if (top === undefined) {
      // Entries without layers are passed over.
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

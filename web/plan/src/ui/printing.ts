/**
 * Printing of what is drawn only as far as it is on the screen: first everything is drawn, then the
 * printer is asked.
 *
 * The browser's own command for it cannot be made to wait, and prints what is there by then.
 */
import { flushSync } from "preact/compat";
import { useEffect, useState } from "preact/hooks";

export type PrintState =
  | "no"
  /** Soon, when everything that is to be on paper is drawn: see {@link usePrintWhenDrawn}. */
  | "wanted"
  /** The browser is at it. */
  | "now";

const WANTED = "plan-print";

export function requestPrint(): void {
  dispatchEvent(new Event(WANTED));
}

/** Whether the page is being printed, or is about to be. */
export function usePrinting(): PrintState {
  const [printing, setPrinting] = useState<PrintState>("no");
  useEffect(() => {
    const begin = (): void => flushSync(() => setPrinting("now"));
    const want = (): void => setPrinting("wanted");
    const end = (): void => setPrinting("no");
    addEventListener(WANTED, want);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener(WANTED, want);
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return printing;
}

/** Asks the printer as soon as all that is to be on paper is there. */
export function usePrintWhenDrawn(printing: PrintState, isDrawn: boolean): void {
  useEffect(() => {
    if (printing !== "wanted" || !isDrawn) return undefined;
    // Not from here: what printing draws would run this once more.
    const timer = setTimeout(() => print(), 0);
    return () => clearTimeout(timer);
  }, [printing, isDrawn]);
}

/**
 * Printing of content that is otherwise drawn only as far as it is visible: first everything is
 * drawn, then the print dialog opens.
 *
 * The browser's own print command cannot be made to wait; it prints what is drawn by then.
 */
import { flushSync } from "preact/compat";
import { useEffect, useState } from "preact/hooks";

export type PrintState =
  | "no"
  /** The page will print as soon as all printed content is drawn: see {@link usePrintWhenDrawn}. */
  | "wanted"
  /** The browser is printing. */
  | "now";

const WANTED = "plan-print";

export function requestPrint(): void {
  dispatchEvent(new Event(WANTED));
}

/** Returns whether the page is being printed, or is about to be. */
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

/** Opens the print dialog as soon as everything to print is drawn. */
export function usePrintWhenDrawn(printing: PrintState, isDrawn: boolean): void {
  useEffect(() => {
    if (printing !== "wanted" || !isDrawn) return undefined;
    // Not called directly: the rendering for the printer would run this effect again.
    const timer = setTimeout(() => print(), 0);
    return () => clearTimeout(timer);
  }, [printing, isDrawn]);
}

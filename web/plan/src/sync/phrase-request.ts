/**
 * Asks for the recovery phrase when the server's items turn out to be encrypted with one that is
 * not here: once each time, the pill says it from then on.
 */
import type { Database } from "@warren/client";
import { useEffect } from "preact/hooks";
import type { Dialogue } from "../app-context.js";
import { useStatus } from "../ui/hooks.js";

export function usePhraseRequest(
  db: Database,
  open: Dialogue | undefined,
  show: (dialogue: Dialogue) => void,
): void {
  const { sync } = useStatus(db);
  const isSealed = sync.phase === "failed" && sync.error.code === "sealed";
  const isFree = open === undefined;
  useEffect(() => {
    if (isSealed && isFree) show({ kind: "enterPhrase" });
    // Not when a dialog closes: the user may have said "later".
  }, [isSealed]);
}

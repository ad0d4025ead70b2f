/**
 * Asks for the recovery phrase when the server's items turn out to be encrypted with one that is
 * not here, and how an account without items is to begin: once each time, the pill says it from
 * then on. And shows a new phrase until the user has typed some of its words.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect } from "preact/hooks";
import type { OpenDialog } from "../app-context.js";
import { useStatus } from "../ui/hooks.js";
import { isUnconfirmed } from "./confirmation.js";

/** Shows the dialog that asks, or the phrase that is to be written down, when it is time. */
export function usePhraseRequest(
  db: WarrenDatabase,
  open: OpenDialog | undefined,
  show: (dialogue: OpenDialog) => void,
): void {
  const { sync, endToEndEncrypted: isE2ee } = useStatus(db);
  const code = sync.phase === "failed" ? sync.error.code : undefined;
  const isFree = open === undefined;
  useEffect(() => {
    if (!isFree) return;
    if (code === "recovery_phrase_required") show({ kind: "enterPhrase" });
    if (code === "encryption_undecided") show({ kind: "newAccount" });
    // Not when a dialog closes: the user may have said "later".
  }, [code]);
  useEffect(() => {
    if (isE2ee && isUnconfirmed(db)) show({ kind: "phrase" });
  }, [db, isE2ee]);
}

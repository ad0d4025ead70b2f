/**
 * Opens dialogs about the recovery phrase at the right time. It asks for the phrase when the
 * server's items are encrypted with an unknown one, and how to start an account without items:
 * once each time, after which the pill shows it. It shows a new phrase until the user has typed
 * some of its words.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect } from "preact/hooks";
import type { OpenDialog } from "../app-context.js";
import { useStatus } from "../ui/hooks.js";
import { isUnconfirmed } from "./confirmation.js";

/**
 * Opens the dialog that asks for the phrase, or shows the phrase to write down, when it is time.
 */
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
    // Not repeated when a dialog closes: the user may have chosen "later".
  }, [code]);
  useEffect(() => {
    if (isE2ee && isUnconfirmed(db)) show({ kind: "phrase" });
  }, [db, isE2ee]);
}

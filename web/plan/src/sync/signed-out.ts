/**
 * Notifies the user when the server has signed this device out, and offers to sign in again: once
 * each time, after which the pill shows it. It interrupts no work and closes no dialog.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect } from "preact/hooks";
import type { OpenDialog, Toast } from "../app-context.js";
import { useStatus } from "../ui/hooks.js";

type ToastUpdate = (shown: Toast | undefined) => Toast | undefined;

/** Shows the notice for as long as this device is signed out. */
export function useSignedOutNotice(
  db: WarrenDatabase,
  setToast: (change: ToastUpdate) => void,
  show: (dialogue: OpenDialog) => void,
): void {
  const { sync } = useStatus(db);
  const isSignedOut = sync.phase === "failed" && sync.error.code === "invalid_token";
  useEffect(() => {
    if (!isSignedOut) return undefined;
    const notice: Toast = {
      text: "This device was signed out",
      tone: "bad",
      action: { label: "Sign in", run: () => show({ kind: "account", mode: "signIn" }) },
    };
    setToast(() => notice);
    // The user may sign in again in another tab.
    return () => setToast((shown) => (shown === notice ? undefined : shown));
  }, [isSignedOut]);
}

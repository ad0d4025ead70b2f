/**
 * Says so when the server has signed this device out, and offers to sign in again: once each time,
 * the pill says it from then on. Nobody's work is interrupted, and no dialog is closed.
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
    // Another tab may be where the user signs in.
    return () => setToast((shown) => (shown === notice ? undefined : shown));
  }, [isSignedOut]);
}

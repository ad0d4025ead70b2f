/**
 * The dialog for an account without items, shown on a device that has signed in: nothing is sent
 * before the user has said how the account starts. A user who has items elsewhere has a phrase,
 * whatever the server says.
 */
import type { JSX } from "preact";
import { useApp } from "../app-context.js";
import { awaitConfirmation } from "../sync/confirmation.js";
import { errorText } from "../sync/error-texts.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";

export function NewAccountDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, openDialog: show, toast } = useApp();
  const task = useTask();
  const encrypt = (): void =>
    task.run(async () => {
      awaitConfirmation(db);
      await db.createRecoveryPhrase();
      show({ kind: "phrase" });
    });
  const keepPlain = (): void =>
    task.run(async () => {
      await db.confirmNewAccount();
      toast({ text: "Your items will now sync" });
      onClose();
    });
  return (
    <Dialog title="This account is empty" onClose={onClose} size="small" testId="new-account">
      <p>
        Do you have items on another device? Open Plan there first, or enter your recovery phrase.
        Nothing is sent from this device until you choose.
      </p>
      <Problem text={errorText(task.error)} />
      <div class="button-stack">
        <button
          type="button"
          class="button button-primary"
          disabled={task.isBusy}
          onClick={encrypt}
        >
          Start with end-to-end encryption
        </button>
        <button type="button" class="button" disabled={task.isBusy} onClick={keepPlain}>
          Start without end-to-end encryption
        </button>
        <button
          type="button"
          class="button"
          disabled={task.isBusy}
          onClick={() => show({ kind: "enterPhrase" })}
        >
          I have a recovery phrase
        </button>
      </div>
    </Dialog>
  );
}

/**
 * An account that has no items yet, signed in to from a device: nothing is sent before the user has
 * said how it begins. Who has items elsewhere has a phrase, whatever the server says.
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
      toast({ text: "Your items sync from now on" });
      onClose();
    });
  return (
    <Dialog
      title="This account has no items yet"
      onClose={onClose}
      size="small"
      testId="new-account"
    >
      <p>
        If you have items on another device, open Plan there first, or enter its recovery phrase.
        Nothing of this device is sent before you choose.
      </p>
      <Problem text={errorText(task.error)} />
      <div class="button-stack">
        <button
          type="button"
          class="button button-primary"
          disabled={task.isBusy}
          onClick={encrypt}
        >
          It is new: encrypt from end to end
        </button>
        <button type="button" class="button" disabled={task.isBusy} onClick={keepPlain}>
          It is new: without encryption
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

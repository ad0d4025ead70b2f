/**
 * Change of password, and sign-out.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { problemText } from "../sync/problems.js";
import { count } from "../sync/standing.js";
import { Dialog, PasswordField, Problem } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import type { Closable } from "./dialogs.js";

export function PasswordDialog({ onClose }: Closable): JSX.Element {
  const { db, toast } = useApp();
  const [password, setPassword] = useState("");
  const [newPassword, setNewPassword] = useState("");
  const task = useTask();
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => {
      await db.changePassword({ password, newPassword });
      toast({ text: "The password is changed" });
      onClose();
    });
  };
  return (
    <Dialog title="Change password" onClose={onClose} size="small" testId="password">
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={problemText(task.error)} />
        <PasswordField
          label="Present password"
          autocomplete="current-password"
          value={password}
          onInput={setPassword}
        />
        <PasswordField
          label="New password"
          hint="At least 8 characters"
          autocomplete="new-password"
          lengthMin={8}
          value={newPassword}
          onInput={setNewPassword}
        />
        <p class="muted">Your devices stay signed in. One that you lost, revoke under Sync.</p>
        <div class="button-row button-row-end">
          <button type="button" class="button button-quiet" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button button-primary" disabled={task.isBusy}>
            {task.isBusy ? "One moment…" : "Change it"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function SignOutDialog({ onClose }: Closable): JSX.Element {
  const { db, toast } = useApp();
  const { unsent } = useStatus(db);
  const task = useTask();
  const signOut = (): void =>
    task.run(async () => {
      await db.signOut();
      toast({ text: "Signed out" });
      onClose();
    });
  return (
    <Dialog
      title="Sign out?"
      onClose={onClose}
      size="small"
      testId="sign-out"
      footer={
        <>
          <button type="button" class="button button-quiet" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            class="button button-primary"
            disabled={task.isBusy}
            onClick={signOut}
          >
            Sign out
          </button>
        </>
      }
    >
      <Problem text={problemText(task.error)} />
      <p>
        Your items stay on this device, and are not synced until you sign in again.
        {unsent > 0 && ` ${count(unsent)} changes have not been sent yet; they wait here.`}
      </p>
    </Dialog>
  );
}

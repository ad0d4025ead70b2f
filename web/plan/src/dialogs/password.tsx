/**
 * The dialog that changes the password of the account.
 */
import type { ChangePasswordOptions, ErrorCode } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { codeOf, errorText } from "../sync/error-texts.js";
import {
  CheckField,
  Dialog,
  NEW_PASSWORD,
  PasswordField,
  Problem,
  type DialogCloseProps,
} from "../ui/dialog.js";
import { useStatus, useTask, type AsyncTask } from "../ui/hooks.js";

/**
 * Errors after which the password is certainly unchanged. After other errors it may have changed.
 */
const REFUSALS: ReadonlySet<ErrorCode | undefined> = new Set([
  "invalid_password",
  "invalid_token",
  "too_many_attempts",
  "wrong_password",
]);

export function PasswordDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { account } = useStatus(useApp().db);
  const [password, setPassword] = useState("");
  const [newPassword, setNewPassword] = useState("");
  const [revokeOthers, setRevokeOthers] = useState(true);
  const form = useRef<HTMLFormElement>(null);
  const { task, mayBeChanged, change } = usePasswordChange(onClose);
  const isWrong = codeOf(task.error) === "wrong_password";
  useEffect(() => {
    const current = "[autocomplete=current-password]";
    if (isWrong) form.current?.querySelector<HTMLInputElement>(current)?.focus();
  }, [task.error]);
  const submit = (event: Event): void => {
    event.preventDefault();
    change({ password, newPassword, revokeOthers });
  };
  return (
    <Dialog
      title="Change password"
      onClose={task.isBusy ? undefined : onClose}
      size="small"
      testId="password"
    >
      <form class="form" ref={form} onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={isWrong ? wrongPassword(mayBeChanged) : errorText(task.error)} />
        {/* Password managers store the new password under this name. */}
        <input
          class="visually-hidden"
          name="username"
          autocomplete="username"
          value={account?.login ?? ""}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <PasswordField
          label="Current password"
          autocomplete="current-password"
          autofocus
          value={password}
          onInput={setPassword}
        />
        <PasswordField
          label="New password"
          {...NEW_PASSWORD}
          value={newPassword}
          onInput={setNewPassword}
        />
        <CheckField
          label="Sign out all other devices"
          hint="They keep their items and sync again once you sign in there with the new password."
          checked={revokeOthers}
          onChange={setRevokeOthers}
        />
        <div class="button-row button-row-end">
          <button
            type="button"
            class="button button-quiet"
            disabled={task.isBusy}
            onClick={onClose}
          >
            Cancel
          </button>
          <button type="submit" class="button button-primary" disabled={task.isBusy}>
            {task.isBusy ? "Please wait…" : "Change password"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface PasswordChange {
  readonly task: AsyncTask<unknown>;
  /** Whether an earlier attempt failed in a way that may have changed the password. */
  readonly mayBeChanged: boolean;
  readonly change: (change: ChangePasswordOptions) => void;
}

/** Returns the state of the call that changes the password, and the function that starts it. */
function usePasswordChange(onDone: () => void): PasswordChange {
  const { db, toast } = useApp();
  const [mayBeChanged, setMayBeChanged] = useState(false);
  const task = useTask();
  const change = (wanted: ChangePasswordOptions): void =>
    task.run(async () => {
      try {
        await db.changePassword(wanted);
      } catch (error) {
        if (!REFUSALS.has(codeOf(error))) setMayBeChanged(true);
        throw error;
      }
      const others = wanted.revokeOthers ? ", all other devices signed out" : "";
      toast({ text: `Password changed${others}` });
      onDone();
    });
  return { task, mayBeChanged, change };
}

function wrongPassword(mayBeChanged: boolean): string {
  return mayBeChanged
    ? "The current password is wrong. If your last attempt did go through, enter the new " +
        "password here."
    : "The current password is wrong.";
}

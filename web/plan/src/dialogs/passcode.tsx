/**
 * Sets a passcode: from then on the items on this device are encrypted with it.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { protect } from "../passcode.js";
import { problemText } from "../sync/problems.js";
import { Dialog, PasswordField, Problem } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import type { Closable } from "./dialogs.js";

const LENGTH_MIN = 6;

export function PasscodeDialog({ onClose }: Closable): JSX.Element {
  const { db } = useApp();
  const { account, storage } = useStatus(db);
  const [passcode, setPasscode] = useState("");
  const [again, setAgain] = useState("");
  const task = useTask();
  const isDifferent = again !== "" && again !== passcode;
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => {
      await protect(db, passcode);
      location.reload();
    });
  };
  return (
    <Dialog
      title="Set a passcode"
      onClose={task.isBusy ? undefined : onClose}
      size="small"
      testId="passcode"
    >
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <p>
          Plan asks for it each time it starts, and your items are encrypted with it on this device.
          It cannot be recovered.
          {account !== undefined &&
            " You sign in again afterwards, and your items come back from the server."}
        </p>
        <Problem text={isDifferent ? "The two are not the same." : problemText(task.error)} />
        <PasswordField
          label="Passcode"
          hint={`At least ${LENGTH_MIN} characters`}
          autocomplete="new-password"
          lengthMin={LENGTH_MIN}
          value={passcode}
          onInput={setPasscode}
        />
        <PasswordField
          label="Once more"
          autocomplete="new-password"
          value={again}
          onInput={setAgain}
        />
        <div class="button-row button-row-end">
          <button type="button" class="button button-quiet" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="button button-primary"
            disabled={task.isBusy || again !== passcode || storage === "memory"}
          >
            {task.isBusy ? "Encrypting…" : "Set it"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/**
 * Sets, changes or removes the passcode with which this device's items are encrypted. Everything
 * else stays: account, phrase, and unsent changes.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { setPasscode } from "../databases.js";
import { codeOf, errorText } from "../sync/error-texts.js";
import { Dialog, PasswordField, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import { WordsCheck } from "./words-check.js";

const LENGTH_MIN = 6;

export type PasscodeChange = "set" | "change" | "remove";

const TITLES: Readonly<Record<PasscodeChange, string>> = {
  set: "Set passcode",
  change: "Change passcode",
  remove: "Remove passcode",
};

const DONE: Readonly<Record<PasscodeChange, string>> = {
  set: "Your items are now encrypted on this device",
  change: "Passcode changed",
  remove: "Passcode removed",
};

interface PasscodeDialogProps extends DialogCloseProps {
  readonly change: PasscodeChange;
}

export function PasscodeDialog({ change, onClose }: PasscodeDialogProps): JSX.Element {
  const { db, openDialog: show } = useApp();
  const { endToEndEncrypted: isE2ee } = useStatus(db);
  const [isAsked, setAsked] = useState(isE2ee && change === "set");
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog
      title={TITLES[change]}
      onClose={isBusy ? undefined : onClose}
      size="small"
      testId="passcode"
    >
      {isAsked ? (
        <WordsCheck
          why={
            "If you forget the passcode, you can only get your items back with your recovery " +
            "phrase. Enter three of its words to confirm that you have it."
          }
          action="Continue"
          onPassed={() => setAsked(false)}
          onBack={() => show({ kind: "phrase" })}
        />
      ) : (
        <PasscodeForm change={change} onClose={onClose} onBusy={setBusy} />
      )}
    </Dialog>
  );
}

interface PasscodeFormProps extends PasscodeDialogProps {
  readonly onBusy: (isBusy: boolean) => void;
}

function PasscodeForm({ change, onClose, onBusy }: PasscodeFormProps): JSX.Element {
  const { db, toast } = useApp();
  const { account, storage } = useStatus(db);
  const [old, setOld] = useState("");
  const [passcode, setNew] = useState("");
  const [again, setAgain] = useState("");
  const task = useTask();
  const isDifferent = again !== "" && again !== passcode;
  const submit = (event: Event): void => {
    event.preventDefault();
    onBusy(true);
    task.run(async () => {
      try {
        const from = change === "set" ? null : old;
        await setPasscode(db, { from, to: change === "remove" ? null : passcode });
      } finally {
        onBusy(false);
      }
      toast({ text: DONE[change] });
      onClose();
    });
  };
  return (
    <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
      <p>{explanation(change, account !== undefined)}</p>
      {storage === "memory" && (
        <p>This browser isn’t saving data permanently, so there’s nothing to lock.</p>
      )}
      <Problem text={isDifferent ? "The passcodes don’t match." : problemText(task.error)} />
      {change !== "set" && (
        <PasswordField
          label="Current passcode"
          autocomplete="current-password"
          value={old}
          onInput={setOld}
        />
      )}
      {change !== "remove" && (
        <>
          <PasswordField
            label={change === "set" ? "Passcode" : "New passcode"}
            hint={`At least ${LENGTH_MIN} characters`}
            autocomplete="new-password"
            lengthMin={LENGTH_MIN}
            value={passcode}
            onInput={setNew}
          />
          <PasswordField
            label="Confirm passcode"
            autocomplete="new-password"
            value={again}
            onInput={setAgain}
          />
        </>
      )}
      <div class="button-row button-row-end">
        <button type="button" class="button button-quiet" disabled={task.isBusy} onClick={onClose}>
          Cancel
        </button>
        <button
          type="submit"
          class="button button-primary"
          disabled={task.isBusy || again !== passcode || storage === "memory"}
        >
          {task.isBusy ? "Please wait…" : TITLES[change]}
        </button>
      </div>
    </form>
  );
}

function problemText(error: unknown): string | undefined {
  return codeOf(error) === "wrong_key" ? "Wrong passcode." : errorText(error);
}

function explanation(change: PasscodeChange, hasAccount: boolean): string {
  if (change === "remove") {
    return "Plan will open without a passcode, and your items won’t be encrypted on this device.";
  }
  const use =
    "You’ll enter the passcode each time you open Plan. It encrypts your items on this device " +
    "and can’t be recovered.";
  return hasAccount
    ? `${use} You stay signed in. If you forget it, you can only erase the items on this device ` +
        "and sign in again."
    : `${use} If you forget it, your items are lost, because they exist only on this device.`;
}

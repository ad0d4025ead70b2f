/**
 * Sets, changes or removes the passcode with which this device's items are encrypted. Everything
 * else stays: account, phrase, and what was not sent yet.
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
  set: "Set a passcode",
  change: "Change the passcode",
  remove: "Remove the passcode",
};

const DONE: Readonly<Record<PasscodeChange, string>> = {
  set: "Your items are encrypted on this device",
  change: "The passcode is changed",
  remove: "Your items have no passcode any more",
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
            "If you forget the passcode, the only way back to your items is your recovery " +
            "phrase. Type three of its words, to see that you have it."
          }
          action="Go on"
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
  const problem =
    codeOf(task.error) === "wrong_key" ? "This is not the passcode." : errorText(task.error);
  return (
    <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
      <p>{explanation(change, account !== undefined)}</p>
      {storage === "memory" && <p>This browser keeps no files here: there is nothing to lock.</p>}
      <Problem text={isDifferent ? "The two are not the same." : problem} />
      {change !== "set" && (
        <PasswordField
          label="Present passcode"
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
            label="Once more"
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
          {task.isBusy ? "One moment…" : change === "remove" ? "Remove it" : "Set it"}
        </button>
      </div>
    </form>
  );
}

function explanation(change: PasscodeChange, hasAccount: boolean): string {
  if (change === "remove") {
    return "Your items are kept on this device without encryption then, and Plan opens at once.";
  }
  const use =
    "Plan asks for it each time it starts, and your items are encrypted with it on this device.";
  return hasAccount
    ? `${use} You stay signed in. Nobody can recover it: if you forget it, you can only erase ` +
        "this device and sign in again."
    : `${use} Nobody can recover it: if you forget it, your items are lost, since they are on no ` +
        "server.";
}

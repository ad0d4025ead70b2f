/**
 * The sign-out dialog: the synced items stay on this device, or are removed.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { erase } from "../databases.js";
import { errorText } from "../sync/error-texts.js";
import { counted } from "../sync/sync-indicator.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import { WordsCheck } from "./words-check.js";

type SignOutChoice = "keep" | "remove";

export function SignOutDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, toast, openDialog: show, reopen } = useApp();
  const { endToEndEncrypted: isE2ee } = useStatus(db);
  const [choice, setChoice] = useState<SignOutChoice>("keep");
  const [isAsked, setAsked] = useState(false);
  const task = useTask();
  const signOut = (): void =>
    task.run(async () => {
      await db.signOut();
      if (choice === "keep") {
        toast({ text: "Signed out" });
        return onClose();
      }
      await erase(db);
      return reopen({ text: "Signed out, items removed from this device" });
    });
  const submit = (event: Event): void => {
    event.preventDefault();
    if (choice === "remove" && isE2ee) setAsked(true);
    else signOut();
  };
  return (
    <Dialog
      title="Sign out?"
      onClose={task.isBusy ? undefined : onClose}
      size="small"
      testId="sign-out"
    >
      {isAsked && <Problem text={errorText(task.error)} />}
      {isAsked ? (
        <WordsCheck
          why={
            "To get your items back after they are removed here, you’ll need your recovery " +
            "phrase. Enter three of its words to confirm that you have it."
          }
          action="Sign out and remove"
          onPassed={signOut}
          onBack={() => show({ kind: "phrase" })}
        />
      ) : (
        <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
          <Problem text={errorText(task.error)} />
          <Choices choice={choice} onChoose={setChoice} />
          <div class="button-row button-row-end">
            <button type="button" class="button button-quiet" onClick={onClose}>
              Cancel
            </button>
            <button
              type="submit"
              class={`button ${choice === "keep" ? "button-primary" : "button-danger"}`}
              disabled={task.isBusy}
            >
              {choice === "keep" ? "Sign out" : "Sign out and remove"}
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

interface ChoicesProps {
  readonly choice: SignOutChoice;
  readonly onChoose: (choice: SignOutChoice) => void;
}

function Choices({ choice, onChoose }: ChoicesProps): JSX.Element {
  const { db } = useApp();
  const { unsentCount, endToEndEncrypted: isE2ee } = useStatus(db);
  const unsynced = counted(unsentCount, "unsynced change");
  const phrase = isE2ee ? " You’ll need your recovery phrase to get them back." : "";
  const options: readonly (readonly [SignOutChoice, string, string])[] = [
    [
      "keep",
      "Keep on this device",
      "Your items stay here, and anyone who uses this browser can see them." +
        (unsentCount > 0 ? ` This includes ${unsynced}.` : ""),
    ],
    [
      "remove",
      "Remove from this device",
      unsentCount > 0
        ? `${unsynced} will be lost. Everything else is on the server.${phrase}`
        : `All your items are on the server.${phrase}`,
    ],
  ];
  return (
    <fieldset class="form">
      <legend class="visually-hidden">Your items on this device</legend>
      {options.map(([value, label, hint]) => (
        <label class="choice" key={value}>
          <input
            type="radio"
            name="items"
            checked={choice === value}
            onChange={() => onChoose(value)}
          />
          <span>
            <strong>{label}</strong>
            <small>{hint}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

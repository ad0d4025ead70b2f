/**
 * The screen shown before a database with a passcode is open, with a way out for users who forgot
 * it.
 */
import type { WarrenDatabase } from "@warren/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Toast } from "./app-context.js";
import { eraseLocked, openPresent, presentPlace, setPresentPlace } from "./databases.js";
import { codeOf, errorText } from "./sync/error-texts.js";
import { PasswordField, Problem } from "./ui/dialog.js";
import { useTask } from "./ui/hooks.js";

interface LockedProps {
  readonly onOpen: (db: WarrenDatabase) => void;
  readonly onReopen: (toast?: Toast) => void;
}

export function Locked({ onOpen, onReopen }: LockedProps): JSX.Element {
  const [isForgotten, setForgotten] = useState(false);
  return (
    <main class="gate" data-testid="locked">
      <img src="/icon.svg" alt="" width="56" height="56" />
      {isForgotten ? (
        <Erase onReopen={onReopen} onBack={() => setForgotten(false)} />
      ) : (
        <Passcode
          onOpen={onOpen}
          onForgotten={() => setForgotten(true)}
          onOther={() => {
            setPresentPlace();
            onReopen();
          }}
        />
      )}
    </main>
  );
}

interface PasscodeProps {
  readonly onOpen: (db: WarrenDatabase) => void;
  readonly onForgotten: () => void;
  readonly onOther: () => void;
}

function Passcode({ onOpen, onForgotten, onOther }: PasscodeProps): JSX.Element {
  const [passcode, setPasscode] = useState("");
  const { login } = presentPlace();
  const task = useTask();
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => onOpen(await openPresent(passcode)));
  };
  const problem =
    codeOf(task.error) === "wrong_key" ? "Wrong passcode." : errorText(task.error);
  return (
    <>
      <h1>Plan is locked</h1>
      {login !== undefined && <p class="muted">{login}’s items</p>}
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={problem} />
        <PasswordField
          label="Passcode"
          autocomplete="current-password"
          autofocus
          value={passcode}
          onInput={setPasscode}
        />
        <button type="submit" class="button button-primary button-wide" disabled={task.isBusy}>
          {task.isBusy ? "Unlocking…" : "Unlock"}
        </button>
        <button type="button" class="button button-quiet button-wide" onClick={onForgotten}>
          Forgot passcode?
        </button>
        {login !== undefined && (
          <button type="button" class="button button-quiet button-wide" onClick={onOther}>
            Use another account
          </button>
        )}
      </form>
    </>
  );
}

interface EraseProps {
  readonly onReopen: (toast?: Toast) => void;
  readonly onBack: () => void;
}

function Erase({ onReopen, onBack }: EraseProps): JSX.Element {
  const { login } = presentPlace();
  const [isSure, setSure] = useState(false);
  const task = useTask();
  const erase = (): void =>
    task.run(async () => {
      await eraseLocked();
      onReopen({ text: "Items erased from this device" });
    });
  return (
    <>
      <h1>Erase items on this device?</h1>
      <p>
        The passcode can’t be recovered. Without it, you can only erase the items on this device and
        start over.
      </p>
      {login === undefined ? (
        <p>
          Without an account, these items exist only on this device.{" "}
          <strong>They will be lost permanently.</strong>
        </p>
      ) : (
        <p>
          After you sign in again as {login}, your items are downloaded from the server.{" "}
          <strong>Changes that haven’t been sent yet are lost.</strong> If your items are end-to-end
          encrypted, you need your 24-word recovery phrase, or another device that shows it:{" "}
          <strong>without it, your items can’t be recovered.</strong>
        </p>
      )}
      <div class="form">
        <Problem text={errorText(task.error)} />
        <label class="choice">
          <input
            type="checkbox"
            checked={isSure}
            onChange={(event) => setSure(event.currentTarget.checked)}
          />
          <span>
            {login === undefined
              ? "I no longer need these items"
              : "I have my recovery phrase, or my items aren’t end-to-end encrypted"}
          </span>
        </label>
        <button
          type="button"
          class="button button-danger button-wide"
          disabled={!isSure || task.isBusy}
          onClick={erase}
        >
          {task.isBusy
            ? "Erasing…"
            : login === undefined
              ? "Erase items"
              : "Erase items and sign in again"}
        </button>
        <button type="button" class="button button-quiet button-wide" onClick={onBack}>
          Back
        </button>
      </div>
    </>
  );
}

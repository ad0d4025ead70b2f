/**
 * The dialog for signing up and signing in. If a new account is end-to-end encrypted, its recovery
 * phrase is shown next, and must be written down.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { codeOf, errorText } from "../sync/error-texts.js";
import {
  CheckField,
  Dialog,
  Field,
  NEW_PASSWORD,
  PasswordField,
  Problem,
  type DialogCloseProps,
} from "../ui/dialog.js";
import { useAccountForm, type AccountDialogMode, type AccountForm } from "./account-form.js";
import { PhraseField } from "./phrase-field.js";

const LOCKED =
  "This account’s items on this device are locked with a passcode. Unlock them, then sign in.";

const TITLES: Readonly<Record<AccountDialogMode, string>> = {
  signUp: "Create account",
  signIn: "Sign in",
};

interface AccountDialogProps extends DialogCloseProps {
  readonly mode: AccountDialogMode;
}

export function AccountDialog({ mode: first, onClose }: AccountDialogProps): JSX.Element {
  const [mode, setMode] = useState(first);
  const form = useAccountForm(mode, onClose);
  const { task } = form;
  const isLocked = codeOf(task.error) === "wrong_key";
  return (
    <Dialog
      title={TITLES[mode]}
      onClose={task.isBusy ? undefined : onClose}
      size="small"
      testId="account"
    >
      <ModeTabs mode={mode} onMode={setMode} />
      <form class="form" onSubmit={form.submit} aria-busy={task.isBusy}>
        <Problem text={isLocked ? LOCKED : errorText(task.error)} />
        {isLocked && (
          <button type="button" class="button" disabled={task.isBusy} onClick={form.unlock}>
            Unlock with passcode
          </button>
        )}
        <AccountFields mode={mode} form={form} />
        <AccountChoices mode={mode} form={form} />
        <button type="submit" class="button button-primary button-wide" disabled={task.isBusy}>
          {task.isBusy ? "Please wait…" : TITLES[mode]}
        </button>
      </form>
    </Dialog>
  );
}

interface ModeTabsProps {
  readonly mode: AccountDialogMode;
  readonly onMode: (mode: AccountDialogMode) => void;
}

function ModeTabs({ mode, onMode }: ModeTabsProps): JSX.Element {
  return (
    <div class="segments" role="tablist" aria-label="Account">
      {(["signUp", "signIn"] as const).map((kind) => (
        <button
          type="button"
          role="tab"
          key={kind}
          aria-selected={mode === kind}
          onClick={() => onMode(kind)}
        >
          {kind === "signUp" ? "New account" : "Sign in"}
        </button>
      ))}
    </div>
  );
}

interface AccountFormProps {
  readonly mode: AccountDialogMode;
  readonly form: AccountForm;
}

/** The fields that the server needs in any case. */
function AccountFields({ mode, form: { values, change } }: AccountFormProps): JSX.Element {
  return (
    <>
      <Field label="Name">
        {({ id }) => (
          <input
            id={id}
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            maxLength={64}
            value={values.login}
            onInput={(event) => change({ login: event.currentTarget.value })}
          />
        )}
      </Field>
      <PasswordField
        label="Password"
        {...(mode === "signUp" ? NEW_PASSWORD : { autocomplete: "current-password" })}
        value={values.password}
        onInput={(password) => change({ password })}
      />
      <Field label="Device name" hint="Shown in your list of devices">
        {({ id, hint }) => (
          <input
            id={id}
            aria-describedby={hint}
            maxLength={200}
            value={values.device}
            onInput={(event) => change({ device: event.currentTarget.value })}
          />
        )}
      </Field>
    </>
  );
}

/** The choices for this device: encryption, and what happens to the items here. */
function AccountChoices({ mode, form }: AccountFormProps): JSX.Element {
  const { values, change, knowsPhrase, localCount } = form;
  const isNew = mode === "signUp";
  return (
    <>
      {isNew && (
        <CheckField
          label="End-to-end encryption"
          hint={
            "The server can’t read your items. You’ll get a 24-word recovery phrase for your " +
            "other devices."
          }
          checked={values.isE2ee}
          disabled={knowsPhrase}
          onChange={(isE2ee) => change({ isE2ee })}
        />
      )}
      {!isNew && !knowsPhrase && (
        <CheckField
          label="I have a recovery phrase"
          hint="My account is end-to-end encrypted."
          checked={values.hasPhrase}
          onChange={(hasPhrase) => change({ hasPhrase })}
        />
      )}
      {!isNew && values.hasPhrase && (
        <PhraseField words={values.words} onInput={(words) => change({ words })} />
      )}
      {localCount > 0 && (
        <CheckField
          label="Add the items on this device to the account"
          hint={
            "The items and lists here don’t belong to an account yet. Turn this off if they’re " +
            "someone else’s: they’ll stay here, separate from the account."
          }
          checked={values.takesAlong}
          onChange={(takesAlong) => change({ takesAlong })}
        />
      )}
    </>
  );
}

/**
 * Sign-up and sign-in. A new account may encrypt from end to end: then its recovery phrase is shown
 * next, and has to be written down.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { placeOf, presentPlace, setPresentPlace } from "../databases.js";
import { countLocal, enterAccount } from "../entering.js";
import { codeOf, errorText } from "../sync/error-texts.js";
import {
  Dialog,
  Field,
  NEW_PASSWORD,
  PasswordField,
  Problem,
  type DialogCloseProps,
} from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import { normalWords, PhraseField } from "./phrase-field.js";

type AccountDialogMode = "signUp" | "signIn";

const LOCKED =
  "The items of this account on this device have a passcode. Open them with it, then sign in.";

const TITLES: Readonly<Record<AccountDialogMode, string>> = {
  signUp: "Make an account",
  signIn: "Sign in",
};

export function AccountDialog({
  mode: first,
  onClose,
}: DialogCloseProps & { readonly mode: AccountDialogMode }): JSX.Element {
  const app = useApp();
  const status = useStatus(app.db);
  const [mode, setMode] = useState(first);
  const [login, setLogin] = useState(status.account?.login ?? presentPlace().login ?? "");
  const [password, setPassword] = useState("");
  const [device, setDevice] = useState(deviceName);
  const [wantsSeal, setSealed] = useState(true);
  // A phrase that is here already is used.
  const isSealed = wantsSeal || status.sealed;
  const [hasPhrase, setHasPhrase] = useState(false);
  const [words, setWords] = useState("");
  const [localCount, setLocalCount] = useState(0);
  const [takesAlong, setTakesAlong] = useState(true);
  const task = useTask();
  const isNew = mode === "signUp";
  const givesPhrase = !isNew && hasPhrase && !status.sealed;

  useEffect(() => {
    const hasAccount = presentPlace().login !== undefined;
    if (!hasAccount) task.run(async () => setLocalCount(await countLocal(app.db)));
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => {
      const credentials = { login: login.trim(), password, device: device.trim() || deviceName() };
      const db = await enterAccount(app.db, {
        account: { ...credentials, sealed: isNew && isSealed },
        isNew,
        words: givesPhrase ? normalWords(words) : undefined,
        takesAlong,
      });
      const text = isNew
        ? `Your account ${credentials.login} is ready`
        : `Signed in as ${credentials.login}`;
      if (db !== app.db) return app.use(db, { text });
      app.toast({ text });
      return isNew && isSealed ? app.openDialog({ kind: "phrase" }) : onClose();
    });
  };
  const isLocked = codeOf(task.error) === "wrong_key";
  const unlock = (): void =>
    task.run(async () => {
      setPresentPlace(await placeOf(login));
      await app.db.close();
      app.reopen();
    });
  return (
    <Dialog
      title={TITLES[mode]}
      onClose={task.isBusy ? undefined : onClose}
      size="small"
      testId="account"
    >
      <div class="segments" role="tablist" aria-label="Account">
        {(["signUp", "signIn"] as const).map((kind) => (
          <button
            type="button"
            role="tab"
            key={kind}
            aria-selected={mode === kind}
            onClick={() => setMode(kind)}
          >
            {kind === "signUp" ? "New account" : "Sign in"}
          </button>
        ))}
      </div>
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={isLocked ? LOCKED : errorText(task.error)} />
        {isLocked && (
          <button type="button" class="button" disabled={task.isBusy} onClick={unlock}>
            Open them with the passcode
          </button>
        )}
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
              value={login}
              onInput={(event) => setLogin(event.currentTarget.value)}
            />
          )}
        </Field>
        <PasswordField
          label="Password"
          {...(isNew ? NEW_PASSWORD : { autocomplete: "current-password" })}
          value={password}
          onInput={setPassword}
        />
        <Field label="This device" hint="What it is called in the list of your devices">
          {({ id, hint }) => (
            <input
              id={id}
              aria-describedby={hint}
              maxLength={200}
              value={device}
              onInput={(event) => setDevice(event.currentTarget.value)}
            />
          )}
        </Field>
        {isNew && (
          <label class="choice">
            <input
              type="checkbox"
              checked={isSealed}
              disabled={status.sealed}
              onChange={(event) => setSealed(event.currentTarget.checked)}
            />
            <span>
              <strong>Encrypt from end to end</strong>
              <small>
                The server can’t read your items. You get a recovery phrase of 24 words, which your
                other devices need.
              </small>
            </span>
          </label>
        )}
        {!isNew && !status.sealed && (
          <label class="choice">
            <input
              type="checkbox"
              checked={hasPhrase}
              onChange={(event) => setHasPhrase(event.currentTarget.checked)}
            />
            <span>
              <strong>I have a recovery phrase</strong>
              <small>Your items are encrypted from end to end on your other devices.</small>
            </span>
          </label>
        )}
        {givesPhrase && <PhraseField words={words} onInput={setWords} />}
        {localCount > 0 && (
          <label class="choice">
            <input
              type="checkbox"
              checked={takesAlong}
              onChange={(event) => setTakesAlong(event.currentTarget.checked)}
            />
            <span>
              <strong>Put what is on this device into the account</strong>
              <small>
                Your items and lists here have no account yet. Leave this off if they are somebody
                else’s: they stay here then, apart from the account.
              </small>
            </span>
          </label>
        )}
        <button type="submit" class="button button-primary button-wide" disabled={task.isBusy}>
          {task.isBusy ? "One moment…" : TITLES[mode]}
        </button>
      </form>
    </Dialog>
  );
}

/** "Firefox on Linux". */
function deviceName(): string {
  const agent = navigator.userAgent;
  const browser = [
    ["Edg/", "Edge"],
    ["Firefox/", "Firefox"],
    ["Chrome/", "Chrome"],
    ["Safari/", "Safari"],
  ].find(([mark = ""]) => agent.includes(mark))?.[1];
  const system = [
    ["Android", "Android"],
    ["iPhone", "iPhone"],
    ["iPad", "iPad"],
    ["Mac OS", "Mac"],
    ["Windows", "Windows"],
    ["Linux", "Linux"],
  ].find(([mark = ""]) => agent.includes(mark))?.[1];
  return [browser ?? "Browser", system].filter((part) => part !== undefined).join(" on ");
}

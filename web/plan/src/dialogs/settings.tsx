/**
 * Settings, and one's data: look, account, import, export.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { saveCsv, saveDatabase } from "../export.js";
import { awaitConfirmation } from "../sync/confirmation.js";
import { errorText } from "../sync/error-texts.js";
import { readTheme, setTheme, THEMES, type Theme } from "../theme.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask } from "../ui/hooks.js";
import { Icon, type IconName } from "../ui/icons.js";

const THEME_NAMES: Readonly<Record<Theme, string>> = {
  system: "System",
  light: "Light",
  dark: "Dark",
};

export function SettingsDialog({ onClose }: DialogCloseProps): JSX.Element {
  const app = useApp();
  const { db } = app;
  const status = useStatus(db);
  const task = useTask();
  const encrypt = async (): Promise<void> => {
    awaitConfirmation(db);
    await db.createPhrase();
    app.openDialog({ kind: "phrase" });
  };
  return (
    <Dialog title="Settings" onClose={onClose} testId="settings">
      <Problem text={errorText(task.error)} />
      <ThemeChoice />
      <section>
        <h3>Account</h3>
        <ul class="choices">
          {status.account === undefined ? (
            <>
              <Entry
                icon="user"
                label="Make an account"
                onClick={() => app.openDialog({ kind: "account", mode: "signUp" })}
              />
              <Entry
                icon="user"
                label="Sign in"
                onClick={() => app.openDialog({ kind: "account", mode: "signIn" })}
              />
            </>
          ) : (
            <>
              <Entry
                icon="device"
                label={`${status.account.login}: sync and devices`}
                onClick={() => app.openDialog({ kind: "sync" })}
              />
              <Entry
                icon="lock"
                label="Change password"
                onClick={() => app.openDialog({ kind: "password" })}
              />
            </>
          )}
          {status.sealed && (
            <Entry
              icon="note"
              label="Recovery phrase"
              onClick={() => app.openDialog({ kind: "phrase" })}
            />
          )}
          {!status.sealed && status.account !== undefined && (
            <Entry
              icon="lock"
              label="Encrypt your items from end to end"
              onClick={() => task.run(encrypt)}
            />
          )}
          {status.encrypted ? (
            <>
              <Entry
                icon="lock"
                label="Change the passcode"
                onClick={() => app.openDialog({ kind: "passcode", change: "change" })}
              />
              <Entry
                icon="lock"
                label="Remove the passcode"
                onClick={() => app.openDialog({ kind: "passcode", change: "remove" })}
              />
            </>
          ) : (
            <Entry
              icon="lock"
              label="Lock this device’s items with a passcode"
              onClick={() => app.openDialog({ kind: "passcode", change: "set" })}
            />
          )}
        </ul>
      </section>
      <section>
        <h3>Your data</h3>
        <ul class="choices">
          <Entry
            icon="upload"
            label="Import a file"
            onClick={() => app.openDialog({ kind: "import" })}
          />
          <Entry
            icon="download"
            label="Export as CSV"
            onClick={() => task.run(() => saveCsv(db))}
          />
          <Entry
            icon="download"
            label="Export the database file (SQLite)"
            onClick={() => task.run(() => saveDatabase(db))}
          />
          <Entry
            icon="trash"
            label="Recently deleted"
            onClick={() => app.openDialog({ kind: "deleted" })}
          />
          <Entry
            icon="clock"
            label="Lost edits"
            onClick={() => app.openDialog({ kind: "conflicts" })}
          />
          <Entry icon="help" label="Keys" onClick={() => app.openDialog({ kind: "keys" })} />
        </ul>
      </section>
    </Dialog>
  );
}

function ThemeChoice(): JSX.Element {
  const [theme, setChosen] = useState(readTheme);
  return (
    <fieldset class="segments">
      <legend>Look</legend>
      {THEMES.map((known) => (
        <label key={known}>
          <input
            type="radio"
            name="theme"
            checked={theme === known}
            onChange={() => {
              setTheme(known);
              setChosen(known);
            }}
          />
          <span>{THEME_NAMES[known]}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface EntryProps {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
}

function Entry({ icon, label, onClick }: EntryProps): JSX.Element {
  return (
    <li>
      <button type="button" class="place" onClick={onClick}>
        <span class="place-icon">
          <Icon name={icon} />
        </span>
        <span class="place-name">{label}</span>
      </button>
    </li>
  );
}

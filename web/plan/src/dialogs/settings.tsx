/**
 * The settings dialog: appearance, account, import, export.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp, type OpenDialog } from "../app-context.js";
import { saveCsv, saveDatabase } from "../export.js";
import { awaitConfirmation } from "../sync/confirmation.js";
import { errorText } from "../sync/error-texts.js";
import { readTheme, setTheme, THEMES, type Theme } from "../theme.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask, type AsyncTask } from "../ui/hooks.js";
import { Icon, type IconName } from "../ui/icons.js";

const THEME_NAMES: Readonly<Record<Theme, string>> = {
  system: "System",
  light: "Light",
  dark: "Dark",
};

export function SettingsDialog({ onClose }: DialogCloseProps): JSX.Element {
  const task = useTask();
  return (
    <Dialog title="Settings" onClose={onClose} testId="settings">
      <Problem text={errorText(task.error)} />
      <ThemeChoice />
      <AccountSection task={task} />
      <DataSection task={task} />
    </Dialog>
  );
}

interface SettingsSectionProps {
  /** Runs calls that take a while; the dialog shows their errors. */
  readonly task: AsyncTask<unknown>;
}

function AccountSection({ task }: SettingsSectionProps): JSX.Element {
  const { db, openDialog } = useApp();
  const { account, endToEndEncrypted: isE2ee, encrypted } = useStatus(db);
  const encrypt = async (): Promise<void> => {
    awaitConfirmation(db);
    await db.createRecoveryPhrase();
    openDialog({ kind: "phrase" });
  };
  return (
    <section>
      <h3>Account</h3>
      <ul class="choices">
        {account === undefined ? (
          <>
            <DialogEntry
              icon="user"
              label="Create account"
              opens={{ kind: "account", mode: "signUp" }}
            />
            <DialogEntry icon="user" label="Sign in" opens={{ kind: "account", mode: "signIn" }} />
          </>
        ) : (
          <>
            <DialogEntry
              icon="device"
              label={`${account.login}: sync and devices`}
              opens={{ kind: "sync" }}
            />
            <DialogEntry icon="lock" label="Change password" opens={{ kind: "password" }} />
          </>
        )}
        {isE2ee && <DialogEntry icon="note" label="Recovery phrase" opens={{ kind: "phrase" }} />}
        {!isE2ee && account !== undefined && (
          <Entry
            icon="lock"
            label="Turn on end-to-end encryption"
            onClick={() => task.run(encrypt)}
          />
        )}
        <PasscodeEntries isEncrypted={encrypted} />
      </ul>
    </section>
  );
}

function PasscodeEntries({ isEncrypted }: { readonly isEncrypted: boolean }): JSX.Element {
  if (!isEncrypted) {
    return (
      <DialogEntry
        icon="lock"
        label="Lock Plan with a passcode"
        opens={{ kind: "passcode", change: "set" }}
      />
    );
  }
  return (
    <>
      <DialogEntry
        icon="lock"
        label="Change passcode"
        opens={{ kind: "passcode", change: "change" }}
      />
      <DialogEntry
        icon="lock"
        label="Remove passcode"
        opens={{ kind: "passcode", change: "remove" }}
      />
    </>
  );
}

function DataSection({ task }: SettingsSectionProps): JSX.Element {
  const { db } = useApp();
  return (
    <section>
      <h3>Your data</h3>
      <ul class="choices">
        <DialogEntry icon="upload" label="Import a file" opens={{ kind: "import" }} />
        <Entry icon="download" label="Export as CSV" onClick={() => task.run(() => saveCsv(db))} />
        <Entry
          icon="download"
          label="Export database file (SQLite)"
          onClick={() => task.run(() => saveDatabase(db))}
        />
        <DialogEntry icon="trash" label="Recently deleted" opens={{ kind: "deleted" }} />
        <DialogEntry icon="clock" label="Lost edits" opens={{ kind: "conflicts" }} />
        <DialogEntry icon="help" label="Keyboard shortcuts" opens={{ kind: "keys" }} />
      </ul>
    </section>
  );
}

function ThemeChoice(): JSX.Element {
  const [theme, setChosen] = useState(readTheme);
  return (
    <fieldset class="segments">
      <legend>Appearance</legend>
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

interface DialogEntryProps {
  readonly icon: IconName;
  readonly label: string;
  readonly opens: OpenDialog;
}

/** An entry that leads to another dialog. */
function DialogEntry({ icon, label, opens }: DialogEntryProps): JSX.Element {
  const { openDialog } = useApp();
  return <Entry icon={icon} label={label} onClick={() => openDialog(opens)} />;
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

/**
 * Draws the dialog that is open.
 */
import type { JSX } from "preact";
import { useApp, type OpenDialog } from "../app-context.js";
import { AccountDialog } from "./account.js";
import { DeletedDialog } from "./deleted.js";
import { ConflictsDialog } from "./conflicts.js";
import { HistoryDialog } from "./history.js";
import { ImportDialog } from "./import.js";
import { KeysDialog } from "./shortcuts.js";
import { DeleteListDialog, ListDialog, MoveDialog } from "./list.js";
import { NewAccountDialog } from "./new-account.js";
import { PasscodeDialog } from "./passcode.js";
import { PasswordDialog } from "./password.js";
import { EnterPhraseDialog, PhraseDialog } from "./recovery-phrase.js";
import { SettingsDialog } from "./settings.js";
import { SignOutDialog } from "./sign-out.js";
import { SyncDialog } from "./sync.js";

interface DialogsProps {
  readonly dialogue: OpenDialog | undefined;
}

export function Dialogs({ dialogue }: DialogsProps): JSX.Element | null {
  const app = useApp();
  const close = (): void => app.openDialog(undefined);
  if (dialogue === undefined) return null;
  switch (dialogue.kind) {
    case "account":
      return <AccountDialog mode={dialogue.mode} onClose={close} />;
    case "conflicts":
      return <ConflictsDialog onClose={close} />;
    case "deleted":
      return <DeletedDialog onClose={close} />;
    case "deleteList":
      return <DeleteListDialog list={dialogue.list} onClose={close} />;
    case "enterPhrase":
      return <EnterPhraseDialog onClose={close} />;
    case "history":
      return <HistoryDialog item={dialogue.item} onClose={close} />;
    case "import":
      return <ImportDialog onClose={close} />;
    case "keys":
      return <KeysDialog onClose={close} />;
    case "list":
      return <ListDialog list={dialogue.list} onClose={close} />;
    case "move":
      return <MoveDialog item={dialogue.item} onClose={close} />;
    case "newAccount":
      return <NewAccountDialog onClose={close} />;
    case "passcode":
      return <PasscodeDialog change={dialogue.change} onClose={close} />;
    case "password":
      return <PasswordDialog onClose={close} />;
    case "phrase":
      return <PhraseDialog onClose={close} />;
    case "settings":
      return <SettingsDialog onClose={close} />;
    case "signOut":
      return <SignOutDialog onClose={close} />;
    case "sync":
      return <SyncDialog onClose={close} />;
  }
}

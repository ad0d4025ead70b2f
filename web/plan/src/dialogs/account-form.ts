/**
 * The form for signing up or signing in, and the call that follows. Both modes share the same
 * values, so a user who opened the wrong one types nothing twice.
 */
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { placeOf, presentPlace, setPresentPlace } from "../databases.js";
import { countLocal, enterAccount } from "../entering.js";
import { useStatus, useTask, type AsyncTask } from "../ui/hooks.js";
import { normalWords } from "./phrase-field.js";

export type AccountDialogMode = "signUp" | "signIn";

export interface AccountFormValues {
  readonly login: string;
  readonly password: string;
  /** The name that users see for this device. */
  readonly device: string;
  /** Whether a new account is end-to-end encrypted. */
  readonly isE2ee: boolean;
  /** Whether the user says that the account has a recovery phrase. */
  readonly hasPhrase: boolean;
  readonly words: string;
  /** Whether items without an account become the account's. */
  readonly takesAlong: boolean;
}

export interface AccountForm {
  readonly values: AccountFormValues;
  readonly change: (change: Partial<AccountFormValues>) => void;
  /** Whether this device already has a recovery phrase, which is then used. */
  readonly knowsPhrase: boolean;
  /** The number of items and lists on this device without an account. */
  readonly localCount: number;
  readonly task: AsyncTask<unknown>;
  readonly submit: (event: Event) => void;
  /** Asks for the passcode of the account's items on this device. */
  readonly unlock: () => void;
}

/** Returns the values of the form, and the function that submits them. */
export function useAccountForm(mode: AccountDialogMode, onClose: () => void): AccountForm {
  const app = useApp();
  const { account, endToEndEncrypted: knowsPhrase } = useStatus(app.db);
  const [typed, setTyped] = useState<AccountFormValues>(() => ({
    login: account?.login ?? presentPlace().login ?? "",
    password: "",
    device: deviceName(),
    isE2ee: true,
    hasPhrase: false,
    words: "",
    takesAlong: true,
  }));
  const values = knowsPhrase ? { ...typed, isE2ee: true, hasPhrase: false } : typed;
  const [localCount, setLocalCount] = useState(0);
  const task = useTask();
  useEffect(() => {
    const hasAccount = presentPlace().login !== undefined;
    if (!hasAccount) task.run(async () => setLocalCount(await countLocal(app.db)));
  }, []);

  const enter = async (): Promise<void> => {
    const isNew = mode === "signUp";
    const isE2ee = isNew && values.isE2ee;
    const login = values.login.trim();
    const device = values.device.trim() || deviceName();
    const db = await enterAccount(app.db, {
      account: { login, password: values.password, deviceName: device, endToEndEncrypted: isE2ee },
      isNew,
      words: !isNew && values.hasPhrase ? normalWords(values.words) : undefined,
      takesAlong: values.takesAlong,
    });
    const text = isNew ? `Account ${login} created` : `Signed in as ${login}`;
    if (db !== app.db) return app.use(db, { text });
    app.toast({ text });
    return isE2ee ? app.openDialog({ kind: "phrase" }) : onClose();
  };
  const unlock = async (): Promise<void> => {
    setPresentPlace(await placeOf(values.login));
    await app.db.close();
    app.reopen();
  };
  return {
    values,
    knowsPhrase,
    change: (change) => setTyped((before) => ({ ...before, ...change })),
    localCount,
    task,
    submit: (event) => {
      event.preventDefault();
      task.run(enter);
    },
    unlock: () => task.run(unlock),
  };
}

/** Returns a default name for this device, such as "Firefox on Linux". */
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

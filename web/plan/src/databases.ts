/**
 * Which database this browser shows: one for each account, and one for what has no account.
 *
 * - Nobody's items get into another's account: who signs in gets a database of their own, named
 *   after the account.
 * - After a sign-out the account's database stays what is shown, unless it is removed.
 * - A file that has a passcode is opened with it, in each tab.
 */
import { deleteDatabase, open, WarrenError, type WarrenDatabase } from "@warren/client";
import { DATABASE, SCHEMA, TRACKED } from "./data/schema.js";

/** A database, and whose it is. */
export interface DatabasePlace {
  readonly name: string;
  readonly login?: string;
}

const KEY = "plan.database";
const LOCAL: DatabasePlace = { name: DATABASE };

/** What is shown when Plan starts. */
export function presentPlace(): DatabasePlace {
  const stored = localStorage.getItem(KEY);
  return stored === null ? LOCAL : (JSON.parse(stored) as DatabasePlace);
}

/** Without a place: the database that has no account. */
export function setPresentPlace(place: DatabasePlace = LOCAL): void {
  if (place.login === undefined) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, JSON.stringify(place));
}

/** Calls when another tab shows another database, or the passcode has changed there. */
export function onOtherPlace(reload: () => void): () => void {
  const onStorage = ({ key }: StorageEvent): void => {
    if (key === KEY || key === REKEYED) reload();
  };
  addEventListener("storage", onStorage);
  return () => removeEventListener("storage", onStorage);
}

/** Where this account's items are, whoever uses the browser. */
export async function placeOf(login: string): Promise<DatabasePlace> {
  const known = login.trim().toLowerCase();
  // Without a secure context there are no files, and each tab is for itself.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  const text = new TextEncoder().encode(`${location.origin}\n${known}`);
  const digest = await subtle?.digest("SHA-256", text);
  const bytes = [...new Uint8Array(digest ?? [])].slice(0, DIGEST_BYTES);
  const digits = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { name: `${DATABASE}-${digits || "account"}`, login: known };
}

/** Too many for anybody to find a name with the same ones. */
const DIGEST_BYTES = 16;

/** Of the database that is shown, if it has one. */
let passcode: string | undefined;

/** `wrong_key` if the file has a passcode, and another one. */
export async function openPlace({ name }: DatabasePlace, given?: string): Promise<WarrenDatabase> {
  const key = given === undefined ? {} : { key: given };
  return open({ name, schema: SCHEMA, track: TRACKED, ...key });
}

/** The one that is shown. */
export async function openPresent(given?: string): Promise<WarrenDatabase> {
  const db = await openPlace(presentPlace(), given);
  passcode = given;
  return db;
}

/** An account's, beside the one that is shown: with the same passcode, if it has none yet. */
export async function openBeside(place: DatabasePlace): Promise<WarrenDatabase> {
  if (passcode === undefined) return openPlace(place);
  try {
    return await openPlace(place, passcode);
  } catch (error) {
    if (!(error instanceof WarrenError) || error.code !== "wrong_key") throw error;
  }
  const db = await openPlace(place);
  await db.rekey({ from: null, to: passcode });
  return db;
}

interface PasscodeKeys {
  readonly from: string | null;
  readonly to: string | null;
}

const REKEYED = "plan.rekeyed";

/** Sets, changes or removes the passcode. */
export async function setPasscode(db: WarrenDatabase, change: PasscodeKeys): Promise<void> {
  await db.rekey(change);
  passcode = change.to ?? undefined;
  // The other tabs ask for it.
  localStorage.setItem(REKEYED, String(Date.now()));
}

/** Erases what is shown; what has no account is shown after that. */
export async function erase(db: WarrenDatabase): Promise<void> {
  setPresentPlace();
  passcode = undefined;
  await db.delete();
}

/** The same where it cannot be opened. */
export async function eraseLocked(): Promise<void> {
  const { name } = presentPlace();
  setPresentPlace();
  await deleteDatabase(name);
}

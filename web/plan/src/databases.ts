/**
 * Selects the database that this browser shows: one for each account, and one without an account.
 *
 * - No items get into another person's account: each account has a database of its own, named
 *   after the account.
 * - After a sign-out, the account's database stays on the screen, unless it is removed.
 * - A file that has a passcode is opened with it, in each tab.
 */
import { deleteDatabase, open, WarrenError, type WarrenDatabase } from "@warren/client";
import { DATABASE, SCHEMA, TRACKED } from "./data/schema.js";

/** A database's name, and its owner's login. */
export interface DatabasePlace {
  readonly name: string;
  readonly login?: string;
}

const KEY = "plan.database";
const LOCAL: DatabasePlace = { name: DATABASE };

/** Returns the database to show when Plan starts. */
export function presentPlace(): DatabasePlace {
  const stored = localStorage.getItem(KEY);
  return stored === null ? LOCAL : (JSON.parse(stored) as DatabasePlace);
}

/** Sets the database to show; without an argument, the one without an account. */
export function setPresentPlace(place: DatabasePlace = LOCAL): void {
  if (place.login === undefined) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, JSON.stringify(place));
}

/** Calls `reload` when another tab shows another database, or has changed the passcode. */
export function onOtherPlace(reload: () => void): () => void {
  const onStorage = ({ key }: StorageEvent): void => {
    if (key === KEY || key === REKEYED) reload();
  };
  addEventListener("storage", onStorage);
  return () => removeEventListener("storage", onStorage);
}

/** Returns the database of this account, independent of who else uses the browser. */
export async function placeOf(login: string): Promise<DatabasePlace> {
  const known = login.trim().toLowerCase();
  const digits = [...(await nameOf(known))].map((byte) => byte.toString(16).padStart(2, "0"));
  return { name: `${DATABASE}-${digits.join("")}`, login: known };
}

/** The length of the digest, too long to find another name with the same digest. */
const DIGEST_BYTES = 16;
/** The part of a login that fits into a database's name. */
const LOGIN_BYTES = 28;

async function nameOf(login: string): Promise<Uint8Array> {
  const encoder = new TextEncoder();
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  if (subtle === undefined) {
    // Without a secure context there are no digests, but no files either: the databases are in
    // memory, and if two logins begin alike, the second one is refused (`account_differs`).
    return encoder.encode(login).subarray(0, LOGIN_BYTES);
  }
  const text = encoder.encode(`${location.origin}\n${login}`);
  return new Uint8Array(await subtle.digest("SHA-256", text)).subarray(0, DIGEST_BYTES);
}

/** The passcode of the database that is shown, if it has one. */
let passcode: string | undefined;

/** Opens a database; fails with `wrong_key` if the file has a different passcode. */
export async function openPlace({ name }: DatabasePlace, given?: string): Promise<WarrenDatabase> {
  const key = given === undefined ? {} : { key: given };
  return open({ name, schema: SCHEMA, track: TRACKED, ...key });
}

/** Opens the database that is shown. */
export async function openPresent(given?: string): Promise<WarrenDatabase> {
  const db = await openPlace(presentPlace(), given);
  passcode = given;
  return db;
}

/**
 * Opens an account's database while another one is shown; if it has no passcode yet, it gets the
 * same one.
 */
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
  // The other tabs then ask for the new passcode.
  localStorage.setItem(REKEYED, String(Date.now()));
}

/** Erases the database that is shown; afterwards the one without an account is shown. */
export async function erase(db: WarrenDatabase): Promise<void> {
  setPresentPlace();
  passcode = undefined;
  await db.delete();
}

/** Erases the database that is shown without opening it, for a forgotten passcode. */
export async function eraseLocked(): Promise<void> {
  const { name } = presentPlace();
  setPresentPlace();
  await deleteDatabase(name);
}

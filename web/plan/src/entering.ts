/**
 * Enters an account: opens the account's own database and, if the user wants that, copies the
 * items that this browser has without an account.
 */
import type { WarrenDatabase, SignUpOptions } from "@warren/client";
import { insertItems } from "./data/items.js";
import { insertLists } from "./data/lists.js";
import { runStatements } from "./data/run-statements.js";
import type { TodoItem, TodoList } from "./data/schema.js";
import { openBeside, placeOf, presentPlace, setPresentPlace } from "./databases.js";
import { awaitConfirmation, confirmPhrase } from "./sync/confirmation.js";

export interface AccountEntry {
  /** The account; with `endToEndEncrypted`, a new account is end-to-end encrypted. */
  readonly account: SignUpOptions;
  readonly isNew: boolean;
  /** The account's recovery phrase, if it is known. */
  readonly words: string | undefined;
  /** Whether items without an account become the account's. */
  readonly takesAlong: boolean;
}

/** Registers this device, and returns the database to show: the account's. */
export async function enterAccount(
  db: WarrenDatabase,
  entry: AccountEntry,
): Promise<WarrenDatabase> {
  const place = await placeOf(entry.account.login);
  const isOwn = db.name === place.name;
  const target = isOwn ? db : await openBeside(place);
  try {
    await register(target, entry);
  } catch (error) {
    if (!isOwn) await leave(target);
    throw error;
  }
  if (isOwn) return db;
  const isLocal = presentPlace().login === undefined;
  if (isLocal && entry.takesAlong) await copyItems(db, target);
  setPresentPlace(place);
  if (isLocal && entry.takesAlong) await db.delete();
  else await db.close();
  return target;
}

async function register(
  target: WarrenDatabase,
  { account, isNew, words }: AccountEntry,
): Promise<void> {
  if (!isNew) {
    // The phrase comes first, so that everything sent from here on is encrypted, whatever the
    // server says about the account.
    if (words !== undefined) await target.enterRecoveryPhrase(words);
    return target.signIn(account);
  }
  if (account.endToEndEncrypted === true) awaitConfirmation(target);
  try {
    await target.signUp(account);
  } catch (error) {
    confirmPhrase(target);
    throw error;
  }
}

/** Returns the number of items and lists in a database, such as those without an account. */
export async function countLocal(db: WarrenDatabase): Promise<number> {
  const [row] = await db.sql<{ n: number }>`
    SELECT (SELECT count(*) FROM item) + (SELECT count(*) FROM list) AS n`;
  return row?.n ?? 0;
}

async function copyItems(from: WarrenDatabase, to: WarrenDatabase): Promise<void> {
  const lists = await from.sql<TodoList>`SELECT * FROM list`;
  const items = await from.sql<TodoItem>`SELECT * FROM item`;
  await runStatements(to, [insertLists(lists, "keep"), insertItems(items, "keep")]);
}

/** Cleans up after a failed attempt: removes the account's database, unless it was used before. */
async function leave(target: WarrenDatabase): Promise<void> {
  const isUsed = target.status.value.unsentCount > 0 || (await countLocal(target)) > 0;
  await (isUsed ? target.close() : target.delete());
}

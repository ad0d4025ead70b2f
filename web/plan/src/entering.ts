/**
 * Into an account: its own database is opened, and what this browser made without an account comes
 * along, if that is wanted.
 */
import type { WarrenDatabase, SignUpOptions } from "@warren/client";
import { insertItems } from "./data/items.js";
import { insertLists } from "./data/lists.js";
import { runStatements } from "./data/run-statements.js";
import type { TodoItem, TodoList } from "./data/schema.js";
import { openBeside, placeOf, presentPlace, setPresentPlace } from "./databases.js";
import { awaitConfirmation, confirmPhrase } from "./sync/confirmation.js";

export interface AccountEntry {
  /** With `endToEndEncrypted` a new account encrypts from end to end. */
  readonly account: SignUpOptions;
  readonly isNew: boolean;
  /** The account's recovery phrase, where it is known. */
  readonly words: string | undefined;
  /** Whether items without an account become the account's. */
  readonly takesAlong: boolean;
}

/** Returns the database that is to be shown: the account's. */
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
    // First: what is sent from here on is encrypted, whatever the server says of the account.
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

/** How many items and lists there are that have no account. */
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

/** Nothing is left of an attempt that failed, unless the account has been here before. */
async function leave(target: WarrenDatabase): Promise<void> {
  const isUsed = target.status.value.unsentCount > 0 || (await countLocal(target)) > 0;
  await (isUsed ? target.close() : target.delete());
}

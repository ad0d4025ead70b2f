/**
 * Which database this browser uses: the plain one, or the one that a passcode opens.
 *
 * A passcode is set by making the second one, taking the items over, and erasing the first: no page
 * of the plain file is left.
 */
import { open, WarrenError, type Database } from "@warren/client";
import { DATABASE, SCHEMA, TRACKED, type Item, type List } from "./data/schema.js";
import { insertItems } from "./data/items.js";
import { insertLists } from "./data/lists.js";
import { runStatements } from "./data/run.js";

const KEY = "plan.protected";
const PROTECTED = `${DATABASE}-protected`;

export function isProtected(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function openDatabase(passcode?: string): Promise<Database> {
  return open({
    name: isProtected() ? PROTECTED : DATABASE,
    schema: SCHEMA,
    track: TRACKED,
    ...(passcode === undefined ? {} : { key: passcode }),
  });
}

/** Encrypts this device's items from here on. The page has to be loaded again afterwards. */
export async function protect(db: Database, passcode: string): Promise<void> {
  const status = db.status.value;
  if (status.account !== undefined && status.unsent > 0) {
    throw new WarrenError(
      "unsent",
      "Some changes have not been sent yet. Sync first, then set a passcode.",
    );
  }
  const options = {
    name: PROTECTED,
    schema: SCHEMA,
    track: TRACKED,
    key: passcode,
    autoSync: false,
  };
  const locked = await open(options);
  if (status.account === undefined) {
    const lists = await db.sql<List>`SELECT * FROM list`;
    const items = await db.sql<Item>`SELECT * FROM item`;
    await runStatements(locked, [insertLists(lists), insertItems(items)]);
  } else {
    // They come from the server, after the next sign-in.
    await db.signOut();
  }
  await locked.close();
  localStorage.setItem(KEY, "1");
  await db.close();
  await erase(DATABASE);
}

/** Removes a closed database's files. */
async function erase(name: string): Promise<void> {
  const root = await navigator.storage.getDirectory();
  const pools = await root.getDirectoryHandle("warren");
  await pools.removeEntry(name, { recursive: true });
}

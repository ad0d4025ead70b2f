/**
 * Whether the user has shown that they have the recovery phrase of a database: until then Plan asks
 * at every start. Kept beside the database, in this browser.
 */
import type { Database } from "@warren/client";

const PREFIX = "plan.phrase.";

/** Before there is a phrase: whatever happens next, it will be asked for. */
export function awaitConfirmation({ name }: Database): void {
  localStorage.setItem(PREFIX + name, "unconfirmed");
}

export function confirmPhrase({ name }: Database): void {
  localStorage.removeItem(PREFIX + name);
}

export function isUnconfirmed({ name }: Database): boolean {
  return localStorage.getItem(PREFIX + name) !== null;
}

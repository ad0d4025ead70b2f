/**
 * Whether the user has shown that they have the recovery phrase of a database: until then Plan asks
 * at every start. Kept beside the database, in this browser.
 */
import type { WarrenDatabase } from "@warren/client";

const PREFIX = "plan.phrase.";

/** Before there is a phrase: whatever happens next, it will be asked for. */
export function awaitConfirmation({ name }: WarrenDatabase): void {
  localStorage.setItem(PREFIX + name, "unconfirmed");
}

export function confirmPhrase({ name }: WarrenDatabase): void {
  localStorage.removeItem(PREFIX + name);
}

export function isUnconfirmed({ name }: WarrenDatabase): boolean {
  return localStorage.getItem(PREFIX + name) !== null;
}

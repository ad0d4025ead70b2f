/**
 * Remembers, in this browser's local storage, whether the user has confirmed the recovery phrase
 * of a database. Until then Plan asks at every start.
 */
import type { WarrenDatabase } from "@warren/client";

const PREFIX = "plan.phrase.";

/**
 * Marks the phrase as unconfirmed. Called before it exists, so that Plan asks for it whatever
 * happens next.
 */
export function awaitConfirmation({ name }: WarrenDatabase): void {
  localStorage.setItem(PREFIX + name, "unconfirmed");
}

export function confirmPhrase({ name }: WarrenDatabase): void {
  localStorage.removeItem(PREFIX + name);
}

export function isUnconfirmed({ name }: WarrenDatabase): boolean {
  return localStorage.getItem(PREFIX + name) !== null;
}

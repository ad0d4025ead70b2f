/**
 * Finds the addresses of web pages in a text; an address can never be a script.
 */

/** Matches an address; longer ones are not addresses that a user follows. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"]{1,2000}/gi;
/** Matches the end of a sentence, or a bracket that was opened before the address. */
const AFTER = /[.,;:!?'’”»\]}]+$/;

/** Returns each address once, in their order. */
export function linksIn(text: string): string[] {
  const found = (text.match(ADDRESS) ?? []).map((address) => {
    const trimmed = address.replace(AFTER, "");
    const isOpened = trimmed.includes("(");
    return isOpened ? trimmed : trimmed.replace(/\)+[.,;:!?]*$/, "");
  });
  return [...new Set(found)].filter((address) => URL.canParse(address));
}

/**
 * Addresses of web pages in a text, and what they are followed by: nothing that a script could be.
 */

/** Longer ones are no address that anybody follows. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"]{1,2000}/gi;
/** What ends a sentence, or a bracket that was opened before the address. */
const AFTER = /[.,;:!?'’”»\]}]+$/;

/** Each once, in their order. */
export function linksIn(text: string): string[] {
  const found = (text.match(ADDRESS) ?? []).map((address) => {
    const trimmed = address.replace(AFTER, "");
    const isOpened = trimmed.includes("(");
    return isOpened ? trimmed : trimmed.replace(/\)+[.,;:!?]*$/, "");
  });
  return [...new Set(found)].filter((address) => URL.canParse(address));
}

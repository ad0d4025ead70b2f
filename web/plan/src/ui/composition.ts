/**
 * Keeps keys that compose a letter or a word (Japanese, Chinese, Korean, dead keys) for the input
 * method: none of them is a command, and the Enter that accepts a word does not submit a form.
 */

/** The code of a key that an input method has taken, in Safari also of the key that ends it. */
const TAKEN_BY_INPUT_METHOD = 229;

/** Installs the listener; called once. */
export function keepCompositionApart(): void {
  const keep = (event: KeyboardEvent): void => {
    if (!event.isComposing && event.keyCode !== TAKEN_BY_INPUT_METHOD) return;
    event.stopImmediatePropagation();
    if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
  };
  addEventListener("keydown", keep, true);
}

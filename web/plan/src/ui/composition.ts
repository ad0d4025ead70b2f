/**
 * Keys that compose a letter or a word (Japanese, Chinese, Korean, dead keys) belong to the input
 * method: none of them is a command, and the Enter that accepts a word submits nothing.
 */

/** The code of a key that an input method has taken; Safari has it at the end, too. */
const TAKEN_BY_INPUT_METHOD = 229;

/** Called once. */
export function keepCompositionApart(): void {
  const keep = (event: KeyboardEvent): void => {
    if (!event.isComposing && event.keyCode !== TAKEN_BY_INPUT_METHOD) return;
    event.stopImmediatePropagation();
    if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
  };
  addEventListener("keydown", keep, true);
}

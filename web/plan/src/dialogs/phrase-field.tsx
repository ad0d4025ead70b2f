/**
 * The field into which a recovery phrase is typed or pasted. It accepts the words as people write
 * them down, with numbers and line breaks, and counts them while they are typed.
 */
import type { JSX } from "preact";
import { Field } from "../ui/dialog.js";

interface PhraseFieldProps {
  readonly words: string;
  readonly onInput: (words: string) => void;
}

/** A labeled field for the words, which shows their number. */
export function PhraseField({ words, onInput }: PhraseFieldProps): JSX.Element {
  return (
    <Field label="Recovery phrase" hint={`${wordsCount(words)} of 24 words`}>
      {({ id, hint }) => (
        <textarea
          id={id}
          aria-describedby={hint}
          class="phrase-input"
          rows={4}
          required
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={words}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Returns the words separated by single spaces, without the numbers of a list. */
export function normalWords(words: string): string {
  return words
    .split(/[\s\d.,:;()–-]+/)
    .filter((word) => word !== "")
    .join(" ");
}

/** Counts the words that were typed. */
export function wordsCount(words: string): number {
  const normal = normalWords(words);
  return normal === "" ? 0 : normal.split(" ").length;
}

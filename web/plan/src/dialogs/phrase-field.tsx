/**
 * The field into which a recovery phrase is typed or pasted. It takes the words as people note
 * them, with numbers and line breaks, and counts them while they are typed.
 */
import type { JSX } from "preact";
import { Field } from "../ui/dialog.js";

interface PhraseFieldProps {
  readonly words: string;
  readonly onInput: (words: string) => void;
}

/** A labelled field for the words, which says how many there are. */
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

/** One space between two words; without the numbers of a list. */
export function normalWords(words: string): string {
  return words
    .split(/[\s\d.,:;()–-]+/)
    .filter((word) => word !== "")
    .join(" ");
}

/** How many words were typed. */
export function wordsCount(words: string): number {
  const normal = normalWords(words);
  return normal === "" ? 0 : normal.split(" ").length;
}

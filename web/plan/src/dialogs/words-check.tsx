/**
 * Asks for three words of the recovery phrase: a user who can type them has written them down.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { confirmPhrase } from "../sync/confirmation.js";
import { errorText } from "../sync/error-texts.js";
import { Field, Problem } from "../ui/dialog.js";
import { useTask } from "../ui/hooks.js";

const ASKED_COUNT = 3;

interface WordsCheckProps {
  /** The reason for asking, shown to the user. */
  readonly why: string;
  readonly action: string;
  readonly onPassed: () => void;
  readonly onBack: () => void;
}

/**
 * Asks for words of a phrase that this device has, before an action that may leave no other way to
 * the items.
 */
export function WordsCheck({ why, action, onPassed, onBack }: WordsCheckProps): JSX.Element {
  const { db } = useApp();
  const [words, setWords] = useState<readonly string[]>();
  const [asked] = useState(drawPlaces);
  const [typed, setTyped] = useState<readonly string[]>(() => asked.map(() => ""));
  const [wrong, setWrong] = useState<string>();
  const task = useTask();
  useEffect(() => task.run(async () => setWords((await db.recoveryPhrase())?.split(" "))), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const at = asked.findIndex((place, i) => typed[i]?.trim().toLowerCase() !== words?.[place - 1]);
    if (at >= 0) return setWrong(`Word ${asked[at] ?? ""} is wrong. Check what you wrote down.`);
    confirmPhrase(db);
    return onPassed();
  };
  return (
    <form class="form" onSubmit={submit} data-testid="words-check">
      <p>{why}</p>
      <Problem text={wrong ?? errorText(task.error)} />
      {asked.map((place, i) => (
        <Field key={place} label={`Word ${place}`}>
          {({ id }) => (
            <input
              id={id}
              required
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              value={typed[i] ?? ""}
              onInput={(event) => setTyped(typed.with(i, event.currentTarget.value))}
            />
          )}
        </Field>
      ))}
      <div class="button-row button-row-end">
        <button type="button" class="button button-quiet" onClick={onBack}>
          Show recovery phrase
        </button>
        <button type="submit" class="button button-primary" disabled={words === undefined}>
          {action}
        </button>
      </div>
    </form>
  );
}

const WORDS_COUNT = 24;

/** Draws the positions of the words to ask for, counted from 1, in ascending order. */
function drawPlaces(): number[] {
  const left = Array.from({ length: WORDS_COUNT }, (_, i) => i + 1);
  const drawn = Array.from({ length: ASKED_COUNT }, () => {
    const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
    return left.splice(random % left.length, 1)[0] ?? 1;
  });
  return drawn.sort((a, b) => a - b);
}

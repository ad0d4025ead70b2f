/**
 * The dialogs that show the recovery phrase, to be written down, and that ask for it on the next
 * device. A new phrase is shown until the user has typed some of its words.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { isUnconfirmed } from "../sync/confirmation.js";
import { errorText } from "../sync/error-texts.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { saveFile } from "../ui/files.js";
import { useStatus, useTask } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import { normalWords, PhraseField, wordsCount } from "./phrase-field.js";
import { WordsCheck } from "./words-check.js";

export function PhraseDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db } = useApp();
  const [isNew] = useState(() => isUnconfirmed(db));
  const [isWritten, setWritten] = useState(false);
  return (
    <Dialog
      title="Your recovery phrase"
      onClose={isNew ? undefined : onClose}
      testId="phrase"
      footer={
        !isWritten && (
          <button
            type="button"
            class="button button-primary"
            onClick={isNew ? () => setWritten(true) : onClose}
          >
            {isNew ? "I’ve written it down" : "Done"}
          </button>
        )
      }
    >
      {isWritten ? (
        <WordsCheck
          why="Enter three of the words to check that you wrote them down correctly."
          action="Continue"
          onPassed={onClose}
          onBack={() => setWritten(false)}
        />
      ) : (
        <Words />
      )}
    </Dialog>
  );
}

function Words(): JSX.Element {
  const { db, toast } = useApp();
  const [words, setWords] = useState<string>();
  const task = useTask();
  useEffect(() => task.run(async () => setWords(await db.recoveryPhrase())), []);
  const copy = (): void =>
    task.run(async () => {
      await navigator.clipboard.writeText(words ?? "");
      toast({ text: "Copied" });
    });
  return (
    <>
      <p>
        You need these 24 words, in this order, to open your items on another device. Keep them in a
        safe place. <strong>No one can recover them for you</strong>, not even the server.
      </p>
      <Problem text={errorText(task.error)} />
      <ol class="words" data-testid="words" translate={false}>
        {words?.split(" ").map((word, index) => (
          <li key={index}>{word}</li>
        ))}
      </ol>
      <div class="button-row">
        <button type="button" class="button" disabled={words === undefined} onClick={copy}>
          <Icon name="copy" size={18} />
          Copy
        </button>
        <button
          type="button"
          class="button"
          disabled={words === undefined}
          onClick={() => saveFile("plan-recovery-phrase.txt", "text/plain", `${words ?? ""}\n`)}
        >
          <Icon name="download" size={18} />
          Download
        </button>
      </div>
    </>
  );
}

export function EnterPhraseDialog({ onClose }: DialogCloseProps): JSX.Element {
  const { db, toast } = useApp();
  const { sync } = useStatus(db);
  const [words, setWords] = useState("");
  const task = useTask();
  const isWrong = sync.phase === "failed" && sync.error.code === "wrong_recovery_phrase";
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => {
      await db.enterRecoveryPhrase(normalWords(words));
      // Only a sync can show whether the words match the server's data.
      await db.sync();
      toast({ text: "Your items are unlocked" });
      onClose();
    });
  };
  const before =
    isWrong && !task.isBusy ? "This recovery phrase doesn’t match your items." : undefined;
  return (
    <Dialog title="Enter your recovery phrase" onClose={onClose} size="small" testId="enter-phrase">
      <p>
        Your items are end-to-end encrypted. Enter the 24 words you saved, or find them on another
        device under Settings › Recovery phrase.
      </p>
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={errorText(task.error) ?? before} />
        <PhraseField words={words} onInput={setWords} />
        <div class="button-row button-row-end">
          <button type="button" class="button button-quiet" onClick={onClose}>
            Not now
          </button>
          <button
            type="submit"
            class="button button-primary"
            disabled={task.isBusy || wordsCount(words) === 0}
          >
            {task.isBusy ? "Checking…" : "Unlock"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

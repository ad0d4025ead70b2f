/**
 * The dialog that lists the keyboard shortcuts.
 */
import type { JSX } from "preact";
import { SHORTCUTS } from "../shortcuts.js";
import { Dialog, type DialogCloseProps } from "../ui/dialog.js";

/** Words between the keys, which are not keys themselves. */
const WORDS: ReadonlySet<string> = new Set(["or", "then"]);

export function KeysDialog({ onClose }: DialogCloseProps): JSX.Element {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} size="small" testId="keys">
      <dl class="keys">
        {SHORTCUTS.map(([keys, meaning]) => (
          <div key={meaning}>
            <dt>
              {keys
                .split(" ")
                .map((key, index) =>
                  WORDS.has(key) ? <span key={index}>{key}</span> : <kbd key={index}>{key}</kbd>,
                )}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

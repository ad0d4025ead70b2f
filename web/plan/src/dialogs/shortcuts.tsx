/**
 * The table of keys.
 */
import type { JSX } from "preact";
import { SHORTCUTS } from "../shortcuts.js";
import { Dialog, type DialogCloseProps } from "../ui/dialog.js";

/** Words between keys, which are no keys. */
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

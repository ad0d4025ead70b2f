/**
 * The table of keys.
 */
import type { JSX } from "preact";
import { KEYS } from "../keys.js";
import { Dialog } from "../ui/dialog.js";
import type { Closable } from "./dialogs.js";

/** Words between keys, which are no keys. */
const WORDS: ReadonlySet<string> = new Set(["or", "then"]);

export function KeysDialog({ onClose }: Closable): JSX.Element {
  return (
    <Dialog title="Keys" onClose={onClose} size="small" testId="keys">
      <dl class="keys">
        {KEYS.map(([keys, meaning]) => (
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

/**
 * The links of a note as clickable elements: the note itself is a field, in which nothing can be
 * clicked.
 */
import type { JSX } from "preact";
import { linksIn } from "../data/links.js";

export function NoteLinks({ note }: { readonly note: string }): JSX.Element | null {
  const links = linksIn(note);
  if (links.length === 0) return null;
  return (
    <ul class="note-links" aria-label="Links in the note" data-testid="note-links">
      {links.map((link) => (
        <li key={link}>
          <a href={link} target="_blank" rel="noopener noreferrer">
            {link.replace(/^https?:\/\/(www\.)?/i, "").replace(/\/$/, "")}
          </a>
        </li>
      ))}
    </ul>
  );
}

/**
 * Which items a search finds: every word is somewhere in the title or in the note, whatever its
 * case and the marks on its letters. SQLite knows the case of ASCII letters alone.
 */
import { fold } from "./fold.js";
import type { SqlQuery } from "./views.js";

/** What is searched, of all items. The key is SQLite's own, and short: there may be many found. */
export type SearchableItem = {
  readonly key: number;
  readonly title: string;
  readonly note: string;
};

export const SEARCHABLE_QUERY: SqlQuery = {
  sql: "SELECT rowid AS key, title, note FROM item",
  parameters: [],
};

export interface SearchIndex {
  /** The keys of the rows that are found. */
  find(rows: readonly SearchableItem[], text: string): number[];
}

/** Remembers folded texts from one search to the next, for as long as they stay the same. */
export function createSearchIndex(): SearchIndex {
  let folded = new Map<number, { readonly text: string; readonly folded: string }>();
  let indexed: readonly SearchableItem[] = [];
  function index(rows: readonly SearchableItem[]): void {
    if (rows === indexed) return;
    const next: typeof folded = new Map();
    for (const { key, title, note } of rows) {
      // What no search has in a word keeps the title's end from the note's beginning.
      const text = `${title}\n${note}`;
      const known = folded.get(key);
      next.set(key, known?.text === text ? known : { text, folded: fold(text) });
    }
    folded = next;
    indexed = rows;
  }
  return {
    find: (rows, text) => {
      index(rows);
      const words = fold(text).trim().split(/\s+/);
      const found: number[] = [];
      for (const [key, entry] of folded) {
        if (words.every((word) => entry.folded.includes(word))) found.push(key);
      }
      return found;
    },
  };
}

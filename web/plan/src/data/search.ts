/**
 * Searches items: every word must occur in the title or the note, regardless of case and of the
 * marks on letters. SQLite ignores the case of ASCII letters only.
 */
import { fold } from "./fold.js";
import type { SqlQuery } from "./views.js";

/**
 * The searched columns of an item. The key is SQLite's rowid, which is short: a search may find
 * many items.
 */
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
  /** Returns the keys of the rows that match. */
  find(rows: readonly SearchableItem[], text: string): number[];
}

/**
 * Creates an index that reuses folded texts from one search to the next while they are unchanged.
 */
export function createSearchIndex(): SearchIndex {
  let folded = new Map<number, { readonly text: string; readonly folded: string }>();
  let indexed: readonly SearchableItem[] = [];
  function index(rows: readonly SearchableItem[]): void {
    if (rows === indexed) return;
    const next: typeof folded = new Map();
    for (const { key, title, note } of rows) {
      // No search word contains a line break, so none matches across title and note.
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

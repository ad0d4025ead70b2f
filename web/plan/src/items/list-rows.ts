/**
 * The rows of a view, the loaded items near the window, and the cursor among them.
 *
 * The rows are: the open items; then, if there are finished ones, a row that shows and hides them;
 * then these. Only blocks of rows near the window are read from the database.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import type { TodoItem } from "../data/schema.js";
import {
  countQuery,
  windowQuery,
  type CurrentDay,
  type PlanView,
  type RowRange,
  type SqlQuery,
} from "../data/views.js";
import { useRows } from "../ui/hooks.js";
import { usePrinting, usePrintWhenDrawn, type PrintState } from "../ui/printing.js";
import { blocksOf, useVisible, type VisibleRange } from "../ui/virtual-list.js";

/** The number of rows of each kind in a view. */
export interface VisibleRowCounts {
  readonly open: number;
  readonly done: number;
  readonly isDoneShown: boolean;
}

export function rowCount({ open, done, isDoneShown }: VisibleRowCounts): number {
  return open + (done > 0 ? 1 : 0) + (isDoneShown ? done : 0);
}

interface ListRowsOptions {
  readonly view: PlanView;
  readonly isDoneShown: boolean;
  readonly scroller: { readonly current: HTMLElement | null };
  readonly rowHeight: number;
}

export interface ListRows {
  /** Whether the database has already counted the rows. */
  readonly isCounted: boolean;
  readonly extent: VisibleRowCounts;
  readonly total: number;
  /** The rows to draw: those near the window, or all that are printed. */
  readonly visible: VisibleRange;
  /** The loaded items, by their row. */
  readonly items: ReadonlyMap<number, TodoItem>;
  /** The number of items that are not loaded. */
  readonly missing: number;
  readonly printing: PrintState;
}

/**
 * The maximum number of printed rows, so that no browser has to draw a hundred pages at once; a
 * note mentions the rest.
 */
const PRINTED_MAX = 2_000;

/** Returns the rows to draw, with their items as soon as these are read. */
export function useListRows(options: ListRowsOptions): ListRows {
  const { view, isDoneShown, scroller, rowHeight } = options;
  const { db, now } = useApp();
  const counts = useRows<ItemCounts>(db, countQuery(view, now))?.rows[0];
  const extent = { open: counts?.open ?? 0, done: counts?.done ?? 0, isDoneShown };
  const total = rowCount(extent);
  const onScreen = useVisible(scroller, rowHeight, total);
  const printing = usePrinting();
  const onPaper = { first: 0, end: Math.min(total, PRINTED_MAX) };
  const visible = printing === "no" ? onScreen : onPaper;
  const load = loadOf(view, now, blocksOf(visible), extent);
  const answer = useRows<TodoItem>(db, load.query);
  const items = useMemo(() => {
    const answered = answer === undefined ? undefined : loadedByQuery.get(answer.query);
    if (answer === undefined || answered === undefined) return new Map<number, TodoItem>();
    return itemsByRow(answer.rows, answered, extent.open);
  }, [answer, extent.open]);
  const missing = total - (extent.done > 0 ? 1 : 0) - items.size;
  usePrintWhenDrawn(printing, missing <= total - onPaper.end);
  return { isCounted: counts !== undefined, extent, total, visible, items, missing, printing };
}

type ItemCounts = { readonly open: number; readonly done: number };

interface LoadedWindow {
  readonly query: SqlQuery;
  readonly open: RowRange;
  readonly done: RowRange;
}

/** The ranges of each query, so that the rows of a late answer are put in their place. */
const loadedByQuery = new WeakMap<SqlQuery, LoadedWindow>();

/** Returns the query for the items in these rows, and its ranges. */
function loadOf(
  view: PlanView,
  now: CurrentDay,
  rows: VisibleRange,
  extent: VisibleRowCounts,
): LoadedWindow {
  const { open, isDoneShown } = extent;
  const range = (first: number, end: number): RowRange => ({
    offset: Math.max(0, first),
    count: Math.max(0, end - Math.max(0, first)),
  });
  const openRange = range(
    Math.min(rows.first, open),
    Math.min(rows.end, Math.max(open, rows.first)),
  );
  const doneRange = isDoneShown ? range(rows.first - open - 1, rows.end - open - 1) : range(0, 0);
  const query = windowQuery(view, now, openRange, doneRange);
  const loaded = { query, open: openRange, done: doneRange };
  loadedByQuery.set(query, loaded);
  return loaded;
}

/** Returns the loaded items, by their row. */
function itemsByRow(
  items: readonly TodoItem[],
  loaded: LoadedWindow,
  open: number,
): Map<number, TodoItem> {
  const byRow = new Map<number, TodoItem>();
  let openAt = loaded.open.offset;
  let doneAt = loaded.done.offset + open + 1;
  for (const item of items) {
    if (item.done_ms === null) byRow.set(openAt++, item);
    else byRow.set(doneAt++, item);
  }
  return byRow;
}

/** The user's position in the list. */
export interface ListCursor {
  readonly index: number;
  /** The item that the cursor follows when its row moves; `undefined` for any item in the row. */
  readonly id: string | undefined;
}

/** Returns the cursor, and a function that sets it. The cursor follows its item to another row. */
export function useListCursor(
  items: ReadonlyMap<number, TodoItem>,
): readonly [ListCursor, (cursor: ListCursor) => void] {
  const [cursor, setCursor] = useState<ListCursor>({ index: 0, id: undefined });
  useEffect(() => {
    for (const [index, item] of items) {
      if (item.id === cursor.id && index !== cursor.index) setCursor({ index, id: item.id });
    }
  }, [items]);
  return [cursor, setCursor];
}

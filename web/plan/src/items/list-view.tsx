/**
 * The items of a view, drawn as far as they are on the screen, and how one moves among them.
 *
 * Rows are: the open items, then, if there are finished ones, a row that shows and hides these,
 * then these. Only blocks of rows near the window are read from the database.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { checkItem, moveItem, reorderItem } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import {
  countQuery,
  windowQuery,
  type SqlQuery,
  type RowRange,
  type PlanView,
} from "../data/views.js";
import { count } from "../sync/sync-indicator.js";
import { useDrag, type DragState } from "../ui/drag.js";
import { PHONE, useLatest, useMedia, useRows } from "../ui/hooks.js";
import { usePrinting, usePrintWhenDrawn } from "../ui/printing.js";
import { blocksOf, useVisible, type VisibleRange } from "../ui/virtual-list.js";
import { EmptyView } from "./empty-state.js";
import { useListKeys } from "./list-shortcuts.js";
import { rowCount, type ListCursor, type VisibleRowCounts } from "./list-rows.js";
import { ItemRow, type RowEvents } from "./row.js";

type ItemCounts = { readonly open: number; readonly done: number };

interface LoadedWindow {
  readonly query: SqlQuery;
  readonly open: RowRange;
  readonly done: RowRange;
}

/** What was asked for, so that an answer that comes later is put in its place. */
const loadedByQuery = new WeakMap<SqlQuery, LoadedWindow>();

/** Which items stand in these rows. */
function loadOf(
  view: PlanView,
  now: Parameters<typeof windowQuery>[1],
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

/** The items that are loaded, by their row. */
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

/** So that no browser has to draw a hundred pages at once; the rest is told. */
const PRINTED_MAX = 2_000;

export function ListView({ view }: { readonly view: PlanView }): JSX.Element {
  const app = useApp();
  const { db, now } = app;
  const isPhone = useMedia(PHONE);
  const rowHeight = isPhone ? 60 : 46;
  const scroller = useRef<HTMLDivElement>(null);
  const [isDoneShown, setDoneShown] = useState(view.kind === "search");
  const counts = useRows<ItemCounts>(db, countQuery(view, now))?.rows[0];
  const extent: VisibleRowCounts = {
    open: counts?.open ?? 0,
    done: counts?.done ?? 0,
    isDoneShown,
  };
  const total = rowCount(extent);
  const onScreen = useVisible(scroller, rowHeight, total);
  const printing = usePrinting();
  const onPaper = { first: 0, end: Math.min(total, PRINTED_MAX) };
  const visible = printing === "no" ? onScreen : onPaper;
  const blocks = blocksOf(visible);
  const load = loadOf(view, now, blocks, extent);
  const answer = useRows<TodoItem>(db, load.query);
  const items = useMemo(() => {
    const answered = answer === undefined ? undefined : loadedByQuery.get(answer.query);
    if (answer === undefined || answered === undefined) return new Map<number, TodoItem>();
    return itemsByRow(answer.rows, answered, extent.open);
  }, [answer, extent.open]);

  const missing = total - (extent.done > 0 ? 1 : 0) - items.size;
  usePrintWhenDrawn(printing, missing <= total - onPaper.end);

  useLayoutEffect(() => {
    const element = scroller.current;
    // The rows stand under what is above them, whatever room the scroll bar takes.
    const gutter = element === null ? 0 : (element.offsetWidth - element.clientWidth) / 2;
    element?.style.setProperty("--gutter", `${gutter}px`);
  }, []);
  const [cursor, setCursor] = useState<ListCursor>({ index: 0, id: undefined });
  useEffect(() => {
    for (const [index, item] of items) {
      if (item.id === cursor.id && index !== cursor.index) setCursor({ index, id: item.id });
    }
  }, [items]);
  useListKeys({ scroller, rowHeight, extent, items, cursor, setCursor, view });

  const isSortable = view.kind === "list";
  const onDrop = (drag: DragState): void => {
    const dragged = items.get(drag.index);
    if (dragged === undefined || dragged.id !== drag.id) return;
    const list = app.lists.find((known) => known.id === drag.listId);
    if (list !== undefined) void app.perform(moveItem(db, dragged, list));
    if (drag.target === undefined) return;
    if (drag.target === drag.index || drag.target === drag.index + 1) return;
    const after = drag.target === 0 ? undefined : items.get(drag.target - 1);
    void app.perform(reorderItem(db, dragged, after?.id));
  };
  const { drag, begin } = useDrag({
    scroller,
    rowHeight,
    sortable: isSortable ? extent.open : 0,
    onDrop,
  });

  const latest = useLatest({ app, begin });
  const events = useMemo<RowEvents>(
    () => ({
      check: (item, index) => {
        const doneMs = item.done_ms === null ? Date.now() : null;
        setCursor({ index, id: undefined });
        void latest.current.app.perform(checkItem(item, doneMs));
      },
      open: (item, index) => {
        setCursor({ index, id: item.id });
        latest.current.app.open(item.id);
      },
      focus: (item, index) => setCursor({ index, id: item.id }),
      drag: (event, item, index) => {
        if (event.pointerType !== "mouse") event.preventDefault();
        latest.current.begin(event, { id: item.id, index, title: item.title });
      },
    }),
    [],
  );

  const listsById = useMemo(() => new Map(app.lists.map((list) => [list.id, list])), [app.lists]);
  const rows: JSX.Element[] = [];
  for (let index = visible.first; index < visible.end; index += 1) {
    const top = index * rowHeight;
    if (index === extent.open && extent.done > 0) {
      rows.push(
        <DoneRow
          key="done"
          top={top}
          extent={extent}
          onToggle={() => setDoneShown(!isDoneShown)}
        />,
      );
      continue;
    }
    const item = items.get(index);
    if (item === undefined) {
      rows.push(
        <li
          key={`gap-${index}`}
          class="row row-gap"
          aria-hidden="true"
          style={{ transform: `translateY(${top}px)` }}
        />,
      );
      continue;
    }
    rows.push(
      <ItemRow
        key={item.id}
        item={item}
        index={index}
        count={total}
        top={top}
        today={now.today}
        list={isSortable ? undefined : listsById.get(item.list_id)}
        isCurrent={index === cursor.index}
        isOpen={item.id === app.openId}
        isDragged={item.id === drag?.id}
        on={events}
      />,
    );
  }
  return (
    <div
      class={`scroller${isSortable ? " sortable" : ""}`}
      ref={scroller}
      data-testid="scroller"
      role="region"
      aria-label="Items"
      tabIndex={-1}
    >
      {counts !== undefined && total === 0 && <EmptyView view={view} />}
      {total > 0 && (
        <ul class="rows" style={{ height: `${total * rowHeight}px` }}>
          {rows}
        </ul>
      )}
      {printing === "now" && missing > 0 && <p>and {count(missing)} more</p>}
      {drag?.target !== undefined && (
        <div class="drop-line" style={{ transform: `translateY(${drag.target * rowHeight}px)` }} />
      )}
      {drag !== undefined && (
        <div class="ghost" style={{ transform: `translate(${drag.x}px, ${drag.y}px)` }}>
          {drag.title}
        </div>
      )}
    </div>
  );
}

interface DoneRowProps {
  readonly top: number;
  readonly extent: VisibleRowCounts;
  readonly onToggle: () => void;
}

function DoneRow({ top, extent, onToggle }: DoneRowProps): JSX.Element {
  return (
    <li class="row row-heading" style={{ transform: `translateY(${top}px)` }}>
      <button
        type="button"
        class="row-toggle"
        aria-expanded={extent.isDoneShown}
        onClick={onToggle}
      >
        <span class="chevron" aria-hidden="true" />
        Done
        <span class="count">{extent.done.toLocaleString("en")}</span>
      </button>
    </li>
  );
}

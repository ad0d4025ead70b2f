/**
 * The items of a view, drawn as far as they are on the screen, and the actions on them: by pointer
 * here, by keys in `list-shortcuts.ts`.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useApp, type AppContextValue } from "../app-context.js";
import { checkItem, moveItem, reorderItem } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import type { PlanView } from "../data/views.js";
import { count } from "../sync/sync-indicator.js";
import { useDrag, type DragControls, type DragState } from "../ui/drag.js";
import { PHONE, useLatest, useMedia } from "../ui/hooks.js";
import { EmptyView } from "./empty-state.js";
import {
  useListCursor,
  useListRows,
  type ListCursor,
  type ListRows,
  type VisibleRowCounts,
} from "./list-rows.js";
import { useListKeys } from "./list-shortcuts.js";
import { ItemRow, type RowEvents } from "./row.js";

export function ListView({ view }: { readonly view: PlanView }): JSX.Element {
  const app = useApp();
  const isPhone = useMedia(PHONE);
  const rowHeight = isPhone ? 60 : 46;
  const scroller = useRef<HTMLDivElement>(null);
  const [isDoneShown, setDoneShown] = useState(view.kind === "search");
  const rows = useListRows({ view, isDoneShown, scroller, rowHeight });
  const { extent, total, items, missing } = rows;
  useGutter(scroller);
  const [cursor, setCursor] = useListCursor(items);
  useListKeys({ scroller, rowHeight, extent, items, cursor, setCursor, view });
  const isSortable = view.kind === "list";
  const { drag, begin } = useDrag({
    scroller,
    rowHeight,
    sortable: isSortable ? extent.open : 0,
    onDrop: (dropped) => dropItem(app, items, dropped),
  });
  const events = useRowEvents(app, setCursor, begin);
  return (
    <div
      class={`scroller${isSortable ? " sortable" : ""}`}
      ref={scroller}
      data-testid="scroller"
      role="region"
      aria-label="Items"
      tabIndex={-1}
    >
      {rows.isCounted && total === 0 && <EmptyView view={view} />}
      {total > 0 && (
        <Rows
          rows={rows}
          view={view}
          rowHeight={rowHeight}
          cursor={cursor}
          draggedId={drag?.id}
          on={events}
          onToggleDone={() => setDoneShown(!isDoneShown)}
        />
      )}
      {rows.printing === "now" && missing > 0 && <p>and {count(missing)} more</p>}
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

/** Keeps the rows aligned with the parts above them, independent of the scroll bar's width. */
function useGutter(scroller: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => {
    const element = scroller.current;
    const gutter = element === null ? 0 : (element.offsetWidth - element.clientWidth) / 2;
    element?.style.setProperty("--gutter", `${gutter}px`);
  }, []);
}

/** Moves an item to the list or the position on which it was dropped. */
function dropItem(
  app: AppContextValue,
  items: ReadonlyMap<number, TodoItem>,
  { index, id, target, listId }: DragState,
): void {
  const item = items.get(index);
  if (item === undefined || item.id !== id) return;
  const list = app.lists.find((known) => known.id === listId);
  if (list !== undefined) void app.perform(moveItem(app.db, item, list));
  if (target === undefined || target === index || target === index + 1) return;
  const after = target === 0 ? undefined : items.get(target - 1);
  void app.perform(reorderItem(app.db, item, after?.id));
}

/** Returns the rows' event handlers: one object for as long as the list is mounted. */
function useRowEvents(
  app: AppContextValue,
  setCursor: (cursor: ListCursor) => void,
  begin: DragControls["begin"],
): RowEvents {
  const latest = useLatest({ app, begin });
  return useMemo<RowEvents>(
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
}

interface RowsProps {
  readonly rows: ListRows;
  readonly view: PlanView;
  readonly rowHeight: number;
  readonly cursor: ListCursor;
  /** The item that is being dragged. */
  readonly draggedId: string | undefined;
  readonly on: RowEvents;
  readonly onToggleDone: () => void;
}

/** Draws the rows near the window. A row whose item is not loaded yet is a gap. */
function Rows({ rows, view, rowHeight, cursor, ...props }: RowsProps): JSX.Element {
  const { lists, now, openId } = useApp();
  const { extent, total, visible, items } = rows;
  const listsById = useMemo(() => new Map(lists.map((list) => [list.id, list])), [lists]);
  const row = (index: number): JSX.Element => {
    const top = index * rowHeight;
    if (index === extent.open && extent.done > 0) {
      return <DoneRow key="done" top={top} extent={extent} onToggle={props.onToggleDone} />;
    }
    const item = items.get(index);
    if (item === undefined) return <GapRow key={`gap-${index}`} top={top} />;
    return (
      <ItemRow
        key={item.id}
        item={item}
        index={index}
        count={total}
        top={top}
        today={now.today}
        list={view.kind === "list" ? undefined : listsById.get(item.list_id)}
        isCurrent={index === cursor.index}
        isOpen={item.id === openId}
        isDragged={item.id === props.draggedId}
        on={props.on}
      />
    );
  };
  const drawn = Array.from({ length: visible.end - visible.first }, (_, i) => visible.first + i);
  return (
    <ul class="rows" style={{ height: `${total * rowHeight}px` }}>
      {drawn.map(row)}
    </ul>
  );
}

function GapRow({ top }: { readonly top: number }): JSX.Element {
  return (
    <li class="row row-gap" aria-hidden="true" style={{ transform: `translateY(${top}px)` }} />
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

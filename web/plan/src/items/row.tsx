/**
 * One item in a list: its check box, its title, and further details.
 */
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { describeDay, type Day } from "../data/dates.js";
import { colourOf } from "../data/lists.js";
import type { TodoItem, TodoList } from "../data/schema.js";
import { Icon } from "../ui/icons.js";

interface ItemRowProps {
  readonly item: TodoItem;
  readonly index: number;
  readonly count: number;
  readonly top: number;
  readonly today: Day;
  /** The item's list, in views that mix items of several lists. */
  readonly list: TodoList | undefined;
  readonly isCurrent: boolean;
  readonly isOpen: boolean;
  readonly isDragged: boolean;
  readonly on: RowEvents;
}

/** The handlers of all rows: one object, so that unchanged rows are not drawn again. */
export interface RowEvents {
  readonly check: (item: TodoItem, index: number) => void;
  readonly open: (item: TodoItem, index: number) => void;
  readonly focus: (item: TodoItem, index: number) => void;
  readonly drag: (event: PointerEvent, item: TodoItem, index: number) => void;
}

function ItemRowView(props: ItemRowProps): JSX.Element {
  const { item, index, list, on } = props;
  const isDone = item.done_ms !== null;
  const classes = ["row"];
  if (isDone) classes.push("row-done");
  if (props.isCurrent) classes.push("row-current");
  if (props.isOpen) classes.push("row-open");
  if (props.isDragged) classes.push("row-dragged");
  return (
    <li
      class={classes.join(" ")}
      style={{ transform: `translateY(${props.top}px)` }}
      aria-setsize={props.count}
      aria-posinset={index + 1}
      data-testid="item"
      data-id={item.id}
      onPointerDown={(event) => {
        const onGrip = (event.target as Element).closest(".row-grip") !== null;
        if (onGrip || event.pointerType === "mouse") on.drag(event, item, index);
      }}
    >
      <span class="row-grip" aria-hidden="true">
        <Icon name="grip" />
      </span>
      <span class="row-check">
        <input
          type="checkbox"
          checked={isDone}
          tabIndex={props.isCurrent ? 0 : -1}
          aria-label={`Done: ${item.title}`}
          onChange={(event) => {
            // The check box shows the database's state, so the browser's change is reverted.
            event.currentTarget.checked = isDone;
            on.check(item, index);
          }}
        />
      </span>
      <button
        type="button"
        class="row-main"
        tabIndex={props.isCurrent ? 0 : -1}
        data-index={index}
        aria-current={props.isOpen ? "true" : undefined}
        onClick={() => on.open(item, index)}
        onFocus={() => on.focus(item, index)}
      >
        <span class="row-title" dir="auto">
          {item.title}
        </span>
        <span class="row-facts">
          {list !== undefined && (
            <span class="fact">
              <span class={`dot colour-${colourOf(list)}`} aria-hidden="true" />
              {list.name}
            </span>
          )}
          {item.note !== "" && (
            <span class="fact" title={item.note.slice(0, 200)}>
              <Icon name="note" size={16} />
              <span class="visually-hidden">has a note</span>
            </span>
          )}
          {item.due !== null && <DueLabel due={item.due} today={props.today} isDone={isDone} />}
        </span>
      </button>
    </li>
  );
}

export const ItemRow = memo(ItemRowView);

interface DueLabelProps {
  readonly due: Day;
  readonly today: Day;
  readonly isDone: boolean;
}

function DueLabel({ due, today, isDone }: DueLabelProps): JSX.Element {
  const state = isDone || due > today ? "" : due < today ? " fact-overdue" : " fact-today";
  return (
    <span class={`fact fact-due${state}`}>
      {state === " fact-overdue" && <span class="visually-hidden">overdue: </span>}
      {describeDay(due, today)}
    </span>
  );
}

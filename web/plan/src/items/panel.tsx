/**
 * The panel of one item, for reading and changing it: next to the list if there is space, else
 * over it.
 */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../app-context.js";
import { addDays, describeDay, nextMonday } from "../data/dates.js";
import { checkItem, editItem, moveItem, removeItem, type ItemEdit } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import { itemQuery } from "../data/views.js";
import { useMedia, useRows, WIDE } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import { Sheet } from "../ui/sheet.js";
import { DraftField } from "./draft.js";
import { NoteLinks } from "./note-links.js";

export function ItemPanel({ id }: { readonly id: string }): JSX.Element | null {
  const app = useApp();
  const isWide = useMedia(WIDE);
  const answer = useRows<TodoItem>(app.db, itemQuery(id));
  const item = answer?.rows[0];
  const isGone = answer !== undefined && item === undefined;
  useEffect(() => {
    if (isGone) app.open(undefined);
  }, [isGone]);
  if (item === undefined || item.id !== id) return null;
  const content = <PanelContent key={id} item={item} />;
  if (isWide) {
    return (
      <aside class="panel" aria-label="Item" data-testid="item-panel">
        {content}
      </aside>
    );
  }
  return (
    <Sheet
      class="panel panel-over"
      label="Item"
      testId="item-panel"
      onClose={() => app.open(undefined)}
    >
      {content}
    </Sheet>
  );
}

function PanelContent({ item }: { readonly item: TodoItem }): JSX.Element {
  const app = useApp();
  const close = (): void => app.open(undefined);
  const save = (edit: ItemEdit): void => {
    const step = editItem(item, edit);
    if (step.apply.length > 0) void app.perform(step, "quiet");
  };
  const isDone = item.done_ms !== null;
  const isDropped = useRef(false);
  return (
    <div
      class="panel-content"
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        }
      }}
    >
      <header class="panel-head">
        <label class="panel-check">
          <input
            type="checkbox"
            checked={isDone}
            onChange={() => void app.perform(checkItem(item, isDone ? null : Date.now()))}
          />
          {isDone ? "Done" : "Mark as done"}
        </label>
        <button type="button" class="icon-button" aria-label="Close item" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <DraftField item={item} field="title" label="Title" isDropped={isDropped} />
      <DueField item={item} onSave={(due) => save({ due })} />
      <div class="panel-field">
        <label for="panel-list">List</label>
        <ListSelect item={item} />
      </div>
      <DraftField item={item} field="note" label="Note" isDropped={isDropped} />
      <NoteLinks note={item.note} />
      <footer class="panel-foot">
        <button
          type="button"
          class="button button-quiet"
          onClick={() => app.openDialog({ kind: "history", item })}
        >
          <Icon name="clock" size={18} />
          History
        </button>
        <button
          type="button"
          class="button button-quiet dangerous"
          onClick={() => {
            isDropped.current = true;
            close();
            void app.perform(removeItem(item));
          }}
        >
          <Icon name="trash" size={18} />
          Delete
        </button>
      </footer>
    </div>
  );
}

interface DueFieldProps {
  readonly item: TodoItem;
  readonly onSave: (due: string | null) => void;
}

function DueField({ item, onSave }: DueFieldProps): JSX.Element {
  const { today } = useApp().now;
  const choices = [
    { label: "Today", due: today },
    { label: "Tomorrow", due: addDays(today, 1) },
    { label: "Next Monday", due: nextMonday(today) },
  ];
  return (
    <div class="panel-field">
      <label for="panel-due">Due{item.due !== null && `: ${describeDay(item.due, today)}`}</label>
      <div class="panel-due">
        <input
          id="panel-due"
          type="date"
          value={item.due ?? ""}
          onChange={(event) => onSave(event.currentTarget.value || null)}
        />
        {item.due !== null && (
          <button
            type="button"
            class="icon-button"
            aria-label="Clear due date"
            onClick={() => onSave(null)}
          >
            <Icon name="close" size={18} />
          </button>
        )}
      </div>
      <div class="chips">
        {choices.map(({ label, due }) => (
          <button
            type="button"
            key={label}
            class="chip"
            aria-pressed={item.due === due}
            onClick={() => onSave(due)}
          >
            {label}
          </button>
        ))}
      </div>
    </div>
  );
}

function ListSelect({ item }: { readonly item: TodoItem }): JSX.Element {
  const app = useApp();
  const isKnown = app.lists.some((list) => list.id === item.list_id);
  return (
    <select
      id="panel-list"
      value={isKnown ? item.list_id : ""}
      onChange={(event) => {
        const list = app.lists.find((known) => known.id === event.currentTarget.value);
        if (list !== undefined) void app.perform(moveItem(app.db, item, list));
      }}
    >
      {!isKnown && <option value="">No list</option>}
      {app.lists.map((list) => (
        <option key={list.id} value={list.id}>
          {list.name}
        </option>
      ))}
    </select>
  );
}

/**
 * One item, to be read and changed: beside the list where there is room, else over it.
 *
 * What is typed is written when the field is left, and when the panel closes; one step for undo.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { addDays, describeDay, nextMonday } from "../data/dates.js";
import { checkItem, editItem, moveItem, removeItem, type Edit } from "../data/items.js";
import type { Item } from "../data/schema.js";
import { itemQuery } from "../data/views.js";
import { useLatest, useMedia, useRows, WIDE } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";
import { Sheet } from "../ui/sheet.js";

export function ItemPanel({ id }: { readonly id: string }): JSX.Element | null {
  const app = useApp();
  const isWide = useMedia(WIDE);
  const answer = useRows<Item>(app.db, itemQuery(id));
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

function PanelContent({ item }: { readonly item: Item }): JSX.Element {
  const app = useApp();
  const close = (): void => app.open(undefined);
  const save = (edit: Edit): void => {
    const step = editItem(item, edit);
    if (step.apply.length > 0) void app.act(step, "quiet");
  };
  const isDone = item.done_ms !== null;
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
            onChange={() => void app.act(checkItem(item, isDone ? null : Date.now()))}
          />
          {isDone ? "Done" : "Mark as done"}
        </label>
        <button type="button" class="icon-button" aria-label="Close item" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <Draft
        label="Title"
        kind="title"
        value={item.title}
        onSave={(title) => title.trim() !== "" && save({ title: title.trim() })}
      />
      <DueField item={item} onSave={(due) => save({ due })} />
      <div class="panel-field">
        <label for="panel-list">List</label>
        <ListSelect item={item} />
      </div>
      <Draft label="Note" kind="note" value={item.note} onSave={(note) => save({ note })} />
      <footer class="panel-foot">
        <button
          type="button"
          class="button button-quiet"
          onClick={() => app.show({ kind: "history", item })}
        >
          <Icon name="clock" size={18} />
          History
        </button>
        <button
          type="button"
          class="button button-quiet dangerous"
          onClick={() => {
            close();
            void app.act(removeItem(item));
          }}
        >
          <Icon name="trash" size={18} />
          Delete
        </button>
      </footer>
    </div>
  );
}

interface DraftProps {
  readonly label: string;
  readonly kind: "title" | "note";
  readonly value: string;
  readonly onSave: (text: string) => void;
}

/** A text that is being typed; what arrives meanwhile from elsewhere does not overwrite it. */
function Draft({ label, kind, value, onSave }: DraftProps): JSX.Element {
  const [draft, setDraft] = useState<string>();
  const area = useRef<HTMLTextAreaElement>(null);
  const latest = useLatest({ draft, onSave });
  const save = (): void => {
    if (latest.current.draft !== undefined) latest.current.onSave(latest.current.draft);
    setDraft(undefined);
  };
  useEffect(
    () => () => {
      if (latest.current.draft !== undefined) latest.current.onSave(latest.current.draft);
    },
    [],
  );
  const text = draft ?? value;
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight + 2}px`;
  }, [text]);
  return (
    <div class={`panel-field panel-${kind}`}>
      <label for={`panel-${kind}`} class={kind === "title" ? "visually-hidden" : undefined}>
        {label}
      </label>
      <textarea
        ref={area}
        id={`panel-${kind}`}
        rows={kind === "title" ? 1 : 5}
        placeholder={kind === "note" ? "Anything worth remembering" : undefined}
        value={text}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onBlur={save}
        onKeyDown={(event) => {
          const ends = kind === "title" || event.ctrlKey || event.metaKey;
          if (event.key !== "Enter" || !ends) return;
          event.preventDefault();
          event.currentTarget.blur();
        }}
      />
    </div>
  );
}

interface DueProps {
  readonly item: Item;
  readonly onSave: (due: string | null) => void;
}

function DueField({ item, onSave }: DueProps): JSX.Element {
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
            aria-label="No due date"
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

function ListSelect({ item }: { readonly item: Item }): JSX.Element {
  const app = useApp();
  const isKnown = app.lists.some((list) => list.id === item.list_id);
  return (
    <select
      id="panel-list"
      value={isKnown ? item.list_id : ""}
      onChange={(event) => {
        const list = app.lists.find((known) => known.id === event.currentTarget.value);
        if (list !== undefined) void app.act(moveItem(app.db, item, list));
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

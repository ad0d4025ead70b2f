/**
 * The dialogs for a list's name and color, for deleting a list, and for moving an item to another
 * list.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { moveItem, quote } from "../data/items.js";
import { addList, colourOf, COLOURS, editList, removeList, type Colour } from "../data/lists.js";
import type { TodoItem, TodoList } from "../data/schema.js";
import { focusQuickAdd } from "../shortcuts.js";
import { Dialog, Field, type DialogCloseProps } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";

export function ListDialog({
  list,
  onClose,
}: DialogCloseProps & { readonly list: TodoList | undefined }): JSX.Element {
  const app = useApp();
  const [name, setName] = useState(list?.name ?? "");
  const fresh = COLOURS[app.lists.length % COLOURS.length] ?? COLOURS[0];
  const [colour, setColour] = useState(list === undefined ? fresh : colourOf(list));
  const submit = (event: Event): void => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "") return;
    onClose();
    if (list !== undefined) {
      void app.perform(editList(list, wanted, colour));
      return;
    }
    const id = crypto.randomUUID();
    const step = addList(app.db, { id, name: wanted, colour, createdMs: Date.now() });
    void app.perform(step).then(() => {
      app.navigate({ kind: "list", id });
      focusQuickAdd();
    });
  };
  return (
    <Dialog
      title={list === undefined ? "New list" : "Edit list"}
      onClose={onClose}
      size="small"
      testId="list-dialog"
    >
      <form class="form" onSubmit={submit}>
        <Field label="Name">
          {({ id }) => (
            <input
              id={id}
              required
              maxLength={100}
              autocomplete="off"
              dir="auto"
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <Swatches colour={colour} onColour={setColour} />
        <div class="button-row button-row-end">
          <button type="button" class="button button-quiet" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button button-primary" disabled={name.trim() === ""}>
            {list === undefined ? "Create list" : "Save"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface SwatchesProps {
  readonly colour: Colour;
  readonly onColour: (colour: Colour) => void;
}

function Swatches({ colour, onColour }: SwatchesProps): JSX.Element {
  return (
    <fieldset class="swatches">
      <legend>Color</legend>
      {COLOURS.map((known) => (
        <label key={known} class={`swatch colour-${known}`}>
          <input
            type="radio"
            name="colour"
            aria-label={known}
            checked={colour === known}
            onChange={() => onColour(known)}
          />
          <Icon name="check" size={16} />
        </label>
      ))}
    </fieldset>
  );
}

export function DeleteListDialog({
  list,
  onClose,
}: DialogCloseProps & { readonly list: TodoList }): JSX.Element {
  const app = useApp();
  const remove = (): void => {
    onClose();
    app.navigate({ kind: "all" });
    void app.perform(removeList(app.db, list));
  };
  return (
    <Dialog
      title={`Delete ${quote(list.name)}?`}
      onClose={onClose}
      size="small"
      testId="delete-list"
      footer={
        <>
          <button type="button" class="button button-quiet" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="button button-danger" onClick={remove}>
            Delete list
          </button>
        </>
      }
    >
      <p>Deletes the list and its items on all your devices. You can undo this.</p>
    </Dialog>
  );
}

export function MoveDialog({
  item,
  onClose,
}: DialogCloseProps & { readonly item: TodoItem }): JSX.Element {
  const app = useApp();
  const others = app.lists.filter((list) => list.id !== item.list_id);
  return (
    <Dialog title={`Move ${quote(item.title)} to`} onClose={onClose} size="small" testId="move">
      {others.length === 0 && <p class="muted">No other lists yet.</p>}
      <ul class="choices">
        {others.map((list) => (
          <li key={list.id}>
            <button
              type="button"
              class="place"
              onClick={() => {
                onClose();
                void app.perform(moveItem(app.db, item, list));
              }}
            >
              <span class="place-icon">
                <span class={`dot colour-${colourOf(list)}`} />
              </span>
              <span class="place-name" dir="auto">
                {list.name}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

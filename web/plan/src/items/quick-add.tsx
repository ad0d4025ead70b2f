/**
 * The line for new items. They go to the list on the screen; in a smart view, to the first list,
 * with the view's due date. If there is no list yet, one is created. Several pasted lines become
 * several items, in one undo step.
 */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useApp, type AppContextValue } from "../app-context.js";
import { addDays, type Day } from "../data/dates.js";
import { addItems } from "../data/items.js";
import { insertLists } from "../data/lists.js";
import { positionAfter } from "../data/fractional-order.js";
import type { UndoableStep } from "../data/undo.js";
import { Icon } from "../ui/icons.js";

/** Matches the bullets that other programs put before the lines of a list. */
const BULLET = /^\s*(?:[-*+•‣▪◦–]\s+)?(?:(?:\[ ?\]|☐)\s+)?/;

/** Returns the lines that are items if there are several; a single one goes into the field. */
function linesOf(pasted: string): readonly string[] {
  const lines = pasted.split(/[\r\n\u2028\u2029]+/).map((line) => line.replace(BULLET, "").trim());
  return lines.filter((line) => line !== "");
}

/** The id of the first list, fixed so that devices that each create it create the same list. */
const FIRST_LIST = "inbox";

export function QuickAdd(): JSX.Element {
  const app = useApp();
  const [title, setTitle] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    const wanted = title.trim();
    input.current?.focus();
    if (wanted === "") return;
    setTitle("");
    void app.perform(addStep(app, [wanted]), "quiet");
  };
  const paste = (event: ClipboardEvent): void => {
    const lines = linesOf(event.clipboardData?.getData("text/plain") ?? "");
    if (lines.length < 2) return;
    event.preventDefault();
    void app.perform(addStep(app, lines));
  };
  return (
    <form class="quick-add" onSubmit={submit}>
      <span class="quick-add-icon">
        <Icon name="plus" />
      </span>
      <input
        ref={input}
        id="quick-add"
        aria-label="Add an item"
        placeholder={placeholder(app)}
        autocomplete="off"
        enterkeyhint="done"
        dir="auto"
        maxLength={500}
        value={title}
        onPaste={paste}
        onInput={(event) => setTitle(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <button type="submit" class="quick-add-go" disabled={title.trim() === ""}>
        Add
      </button>
    </form>
  );
}

function placeholder(app: AppContextValue): string {
  switch (app.view.kind) {
    case "today":
      return "Add an item for today";
    case "upcoming":
      return "Add an item for tomorrow";
    default:
      return "Add an item";
  }
}

async function addStep(app: AppContextValue, titles: readonly string[]): Promise<UndoableStep> {
  const createdMs = Date.now();
  const { view, lists, now } = app;
  const shown = view.kind === "list" ? lists.find((list) => list.id === view.id) : undefined;
  const list = shown ?? lists[0];
  const due: Day | null =
    view.kind === "today" ? now.today : view.kind === "upcoming" ? addDays(now.today, 1) : null;
  const listId = list?.id ?? FIRST_LIST;
  const items = titles.map((title) => ({ id: crypto.randomUUID(), title }));
  const step = await addItems(app.db, { items, listId, due, createdMs });
  if (list !== undefined) return step;
  const made = { id: FIRST_LIST, name: "Inbox", colour: "green", created_ms: createdMs };
  const first = insertLists([{ ...made, position: positionAfter(undefined) }]);
  return { ...step, apply: [first, ...step.apply] };
}

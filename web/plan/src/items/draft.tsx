/**
 * The field for an item's text while it is typed. The text is written when the user leaves the
 * field or the panel closes; that is one undo step.
 *
 * - A change that arrives from elsewhere does not overwrite the typed text: the field reports it,
 *   and the user decides. If the user leaves without deciding, the typed text is written, and the
 *   other text is listed among the lost edits.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useApp, type AppContextValue } from "../app-context.js";
import { keepDraft, writeDraft, type ItemDraft, type ItemField } from "../data/drafts.js";
import { editItem, quote } from "../data/items.js";
import type { TodoItem } from "../data/schema.js";
import { focusTitle } from "../shortcuts.js";
import { deviceName, loadNamed } from "../sync/device-names.js";
import { errorText } from "../sync/error-texts.js";
import { TOUCH, useLatest } from "../ui/hooks.js";

interface DraftFieldProps {
  readonly item: TodoItem;
  readonly field: ItemField;
  readonly label: string;
  /** Whether the user deletes the item: then the typed text is dropped with it. */
  readonly isDropped: { readonly current: boolean };
}

export function DraftField({ item, field, label, isDropped }: DraftFieldProps): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  const draft = useDraft(item, field, isDropped);
  // Focused before the user can click into another field: a later focus would steal the cursor.
  useLayoutEffect(() => {
    // On touch screens, the keyboard would hide the item that was opened to be read.
    if (field === "title" && !matchMedia(TOUCH).matches) focusTitle();
  }, []);
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight + 2}px`;
  }, [draft.text]);
  return (
    <div class={`panel-field panel-${field}`} data-kept={draft.isKept}>
      <label for={`panel-${field}`} class={field === "title" ? "visually-hidden" : undefined}>
        {label}
      </label>
      <textarea
        ref={area}
        id={`panel-${field}`}
        dir="auto"
        rows={field === "title" ? 1 : 5}
        placeholder={field === "note" ? "Anything worth remembering" : undefined}
        value={draft.text}
        onInput={(event) => draft.type(event.currentTarget.value)}
        onBlur={draft.leave}
        onKeyDown={(event) => {
          const ends = field === "title" || event.ctrlKey || event.metaKey;
          if (event.key !== "Enter" || !ends) return;
          event.preventDefault();
          event.currentTarget.blur();
        }}
      />
      {draft.isContested && (
        <Contest
          item={item}
          field={field}
          mine={draft.text}
          onText={draft.decide}
          onTheirs={draft.takeTheirs}
        />
      )}
    </div>
  );
}

interface DraftControls {
  /** The text in the field: the typed text, or else the item's. */
  readonly text: string;
  /** Whether the item's text has changed since the typing began. */
  readonly isContested: boolean;
  /** Whether the typed text is stored in the file. */
  readonly isKept: boolean;
  readonly type: (text: string) => void;
  /** Writes the typed text, unless the user has to decide first. */
  readonly leave: () => void;
  /** Writes the text that the user has chosen. */
  readonly decide: (text: string) => void;
  /** Drops the typed text; that can be undone. */
  readonly takeTheirs: () => void;
}

/**
 * The delay before the typed text is stored in the file, so that not every letter is a
 * transaction.
 */
const KEEP_MS = 200;

/** Handles the draft of one text of an item: stores it while it is typed, writes it at the end. */
function useDraft(
  item: TodoItem,
  field: ItemField,
  isDropped: DraftFieldProps["isDropped"],
): DraftControls {
  const app = useApp();
  const value = item[field];
  const [draft, setDraft] = useState<ItemDraft>();
  /** The draft that is being written. */
  const written = useRef<ItemDraft | undefined>(undefined);
  /** The draft as stored in the file. */
  const [kept, setKept] = useState<ItemDraft>();
  const isContested = draft !== undefined && value !== draft.seen && value !== draft.text;

  /** Writes the typed text; `seen` is the text that the user knowingly replaces. */
  const write = (typed: ItemDraft): void => {
    written.current = draft;
    void save(app, item, field, typed).then((isDone) => {
      if (isDone) {
        // Text typed since then is a draft on top of the written text.
        setDraft((now) => (now === draft ? undefined : now && { ...now, seen: typed.text }));
      } else {
        written.current = undefined;
        keep();
      }
    });
  };
  const latest = useLatest({ app, item, draft, kept });
  const keep = (): void => {
    const now = latest.current;
    if (now.draft === now.kept) return;
    // Text that is being written will be deleted from the drafts. Stored again after that, it would
    // stay there, and the next tab would restore a deleted item with it.
    if (now.draft !== undefined && now.draft === written.current) return;
    keepDraft(app.db, item.id, field, now.draft).then(
      () => setKept(now.draft),
      // If this fails, so does the writing, which reports the error.
      () => undefined,
    );
  };
  useEffect(() => {
    const timer = setTimeout(keep, KEEP_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  useEffect(() => {
    addEventListener("pagehide", keep);
    return () => {
      removeEventListener("pagehide", keep);
      const { draft: left, ...at } = latest.current;
      if (left === undefined || left === written.current) return;
      if (isDropped.current) void keepDraft(at.app.db, item.id, field, undefined);
      else void save(at.app, at.item, field, left);
    };
  }, []);
  return {
    text: draft?.text ?? value,
    isContested,
    isKept: draft !== undefined && draft === kept,
    type: (text) => setDraft({ text, seen: draft?.seen ?? value }),
    leave: () => {
      if (draft !== undefined && !isContested) write(draft);
    },
    decide: (text) => write({ text, seen: value }),
    takeTheirs: () => {
      if (draft === undefined) return;
      setDraft(undefined);
      const run = (): void => void save(app, item, field, { text: draft.text, seen: value });
      app.toast({ text: "Kept theirs", action: { label: "Undo", run } });
    },
  };
}

/**
 * Saves the typed text; returns whether that succeeded. Unchanged texts and empty titles are not
 * written.
 */
async function save(
  app: AppContextValue,
  item: TodoItem,
  field: ItemField,
  typed: ItemDraft,
): Promise<boolean> {
  const text = field === "title" ? typed.text.trim() : typed.text;
  try {
    if (text !== item[field] && (field !== "title" || text !== "")) {
      const outcome = await writeDraft(app.db, item.id, field, { ...typed, text });
      if (outcome === "revived") {
        app.toast({ text: `${quote(item.title)} had been deleted; restored with your text` });
      } else {
        app.undo.remember(editItem(item, { [field]: text }));
        if (outcome === "unseen") app.recount();
      }
    }
    await keepDraft(app.db, item.id, field, undefined);
    return true;
  } catch (error) {
    app.toast({ text: errorText(error) ?? "Your change couldn’t be saved.", tone: "bad" });
    return false;
  }
}

interface ContestProps {
  readonly item: TodoItem;
  readonly field: ItemField;
  readonly mine: string;
  /** Sets the text of the item. */
  readonly onText: (text: string) => void;
  readonly onTheirs: () => void;
}

function Contest({ item, field, mine, onText, onTheirs }: ContestProps): JSX.Element {
  const { db } = useApp();
  const theirs = item[field];
  const [device, setDevice] = useState<string>();
  useEffect(() => {
    setDevice(undefined);
    let isOver = false;
    const find = async (): Promise<readonly string[]> => {
      const entries = await db.history("item", item.id);
      const last = entries.findLast(({ cells }) => cells[field] !== undefined);
      // Text written by another tab is not in the history yet.
      if (isOver || last?.cells[field] !== theirs) return [];
      setDevice(last.deviceName);
      return [last.deviceName];
    };
    // Without the device's name, the question stays the same.
    loadNamed(db, find).catch(() => undefined);
    return () => void (isOver = true);
  }, [theirs]);
  const both = field === "title" ? `${theirs} / ${mine}` : `${theirs}\n\n${mine}`;
  const where = device === undefined ? "elsewhere" : `on ${deviceName(device)}`;
  return (
    <div class="contest" role="alert" data-testid="contest">
      <p>
        <strong>Changed {where} while you were editing:</strong>
      </p>
      <blockquote>{theirs === "" ? "(empty)" : theirs}</blockquote>
      <div class="button-row">
        <button type="button" class="button button-small" onClick={() => onText(mine)}>
          Keep mine
        </button>
        <button type="button" class="button button-small" onClick={onTheirs}>
          Keep theirs
        </button>
        <button type="button" class="button button-small" onClick={() => onText(both)}>
          Keep both
        </button>
      </div>
    </div>
  );
}

/**
 * The head of the list: the view's title, and actions on all of its items.
 */
import type { JSX } from "preact";
import { useApp } from "../app-context.js";
import { removeDone } from "../data/items.js";
import { colourOf } from "../data/lists.js";
import type { PlanView } from "../data/views.js";
import { Icon } from "../ui/icons.js";
import { Menu, type MenuEntry } from "../ui/menu.js";
import { requestPrint } from "../ui/printing.js";

export const VIEW_NAMES = {
  today: "Today",
  upcoming: "Upcoming",
  all: "All",
  none: "No list",
} as const;

interface ViewHeaderProps {
  readonly view: PlanView;
  readonly onMenu: (() => void) | undefined;
  readonly onSearch: (() => void) | undefined;
}

export function ViewHeader({ view, onMenu, onSearch }: ViewHeaderProps): JSX.Element {
  const app = useApp();
  const list = view.kind === "list" ? app.lists.find((known) => known.id === view.id) : undefined;
  const entries: MenuEntry[] = [];
  if (list !== undefined) {
    entries.push(
      {
        label: "Edit list",
        icon: "edit",
        run: () => app.openDialog({ kind: "list", list }),
      },
      { label: "Print", icon: "note", run: requestPrint },
      {
        label: "Delete finished items",
        icon: "check",
        run: () => void app.perform(removeDone(app.db, list.id)),
      },
      {
        label: "Delete list",
        icon: "trash",
        isDangerous: true,
        run: () => app.openDialog({ kind: "deleteList", list }),
      },
    );
  }
  return (
    <header class="view-head">
      {onMenu !== undefined && (
        <button type="button" class="icon-button" aria-label="Lists" onClick={onMenu}>
          <Icon name="menu" />
        </button>
      )}
      <h1 class="view-title" data-testid="view-title">
        {list !== undefined && (
          <span class={`dot dot-large colour-${colourOf(list)}`} aria-hidden="true" />
        )}
        <span class="view-name" dir="auto">
          {nameOf(view, list?.name)}
        </span>
      </h1>
      {view.kind === "today" && <span class="view-date">{longDate()}</span>}
      <span class="spacer" />
      {onSearch !== undefined && (
        <button type="button" class="icon-button" aria-label="Search" onClick={onSearch}>
          <Icon name="search" />
        </button>
      )}
      {entries.length > 0 && <Menu label="List actions" entries={entries} />}
    </header>
  );
}

function nameOf(view: PlanView, list: string | undefined): string {
  switch (view.kind) {
    case "list":
      return list ?? "List";
    case "search":
      return "Search";
    default:
      return VIEW_NAMES[view.kind];
  }
}

function longDate(): string {
  return new Date().toLocaleDateString("en", { weekday: "long", day: "numeric", month: "long" });
}

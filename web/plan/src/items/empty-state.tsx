/**
 * The content of an empty view: its purpose, and what to do next.
 */
import type { JSX } from "preact";
import { useApp } from "../app-context.js";
import type { PlanView } from "../data/views.js";
import { Icon, type IconName } from "../ui/icons.js";

interface EmptyStateText {
  readonly icon: IconName;
  readonly title: string;
  readonly text: string;
}

function textOf(view: PlanView): EmptyStateText {
  switch (view.kind) {
    case "today":
      return {
        icon: "check",
        title: "Nothing due today",
        text: "Items that are due today or overdue appear here.",
      };
    case "upcoming":
      return {
        icon: "upcoming",
        title: "Nothing upcoming",
        text: "Items with a future due date appear here.",
      };
    case "all":
      return {
        icon: "all",
        title: "Nothing to do yet",
        text: "Add your first item above. It’s saved on this device, no account needed.",
      };
    case "none":
      return {
        icon: "none",
        title: "No items without a list",
        text: "Items whose list was deleted on another device appear here.",
      };
    case "list":
      return {
        icon: "check",
        title: "This list is empty",
        text: "Add an item above, or drag one here from another list.",
      };
    case "search":
      return {
        icon: "search",
        title: "No results",
        text: "Every word must appear in an item’s title or note.",
      };
  }
}

export function EmptyView({ view }: { readonly view: PlanView }): JSX.Element {
  const app = useApp();
  // A user without lists is new.
  const isFirst = app.lists.length === 0 && view.kind !== "search";
  const { icon, title, text } = textOf(isFirst ? { kind: "all" } : view);
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={28} />
      </span>
      <h2>{title}</h2>
      <p>{text}</p>
      {isFirst && (
        <p class="empty-actions">
          <button type="button" class="button" onClick={() => app.openDialog({ kind: "import" })}>
            <Icon name="upload" size={18} />
            Import a file
          </button>
          <button
            type="button"
            class="button"
            onClick={() => app.openDialog({ kind: "account", mode: "signIn" })}
          >
            <Icon name="user" size={18} />
            Sign in
          </button>
        </p>
      )}
    </div>
  );
}

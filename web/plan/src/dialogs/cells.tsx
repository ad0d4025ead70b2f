/**
 * The values of a row, labeled with the names of the user interface.
 */
import type { SqlRow, SqlValue } from "@warren/client";
import type { JSX } from "preact";
import { useApp } from "../app-context.js";

/** The names of the columns that users know. */
export const NAMES: Readonly<Record<string, string>> = {
  title: "Title",
  note: "Note",
  due: "Due",
  done_ms: "Done",
  list_id: "List",
  name: "Name",
  colour: "Color",
  position: "Position",
};

export function Cells({ cells }: { readonly cells: SqlRow }): JSX.Element {
  const { lists } = useApp();
  const text = (column: string, value: SqlValue): string => {
    if (column === "done_ms") return value === null ? "No" : "Yes";
    if (column === "list_id") return lists.find((list) => list.id === value)?.name ?? "No list";
    return value === null || value === "" ? "–" : String(value);
  };
  const shown = Object.entries(cells).filter(
    ([column]) => NAMES[column] !== undefined && column !== "position",
  );
  if (shown.length === 0) return <p class="muted">Reordered</p>;
  return (
    <dl class="cells">
      {shown.map(([column, value]) => (
        <div key={column}>
          <dt>{NAMES[column]}</dt>
          <dd>{text(column, value)}</dd>
        </div>
      ))}
    </dl>
  );
}

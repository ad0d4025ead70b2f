/**
 * Reads the rows of Todoist's export: tasks, mixed with sections, comments and settings.
 *
 * A task's section, its parent task (by indentation) and its comments become columns of the task's
 * own row.
 */
import { nameKey } from "./columns.js";
import { isBlank, type RecordCounts, type TableRow } from "./table.js";

/** The columns that are added after the file's own. */
export const TODOIST_COLUMNS = ["Section", "Part of", "Comments"] as const;

interface TodoistTask {
  readonly line: number;
  readonly fields: readonly string[];
  readonly section: string;
  readonly partOf: string;
  readonly comments: string[];
}

export function todoistRows(
  names: readonly string[],
  records: readonly TableRow[],
  counted: RecordCounts,
): TableRow[] {
  const columns = new Map(names.map((name, index) => [nameKey(name), index]));
  const tasks: TodoistTask[] = [];
  /** The titles of the possible parents of a deeper indentation, by their own indentation. */
  let parents: string[] = [];
  let section = "";
  for (const { line, fields } of records) {
    const cell = (name: string): string => (fields[columns.get(name) ?? -1] ?? "").trim();
    const kind = cell("type").toLowerCase();
    const content = cell("content");
    if (isBlank(fields)) {
      counted.add("blank");
    } else if (kind === "task") {
      const depth = Math.max(0, (Number(cell("indent")) || 1) - 1);
      parents = [...parents.slice(0, depth), content];
      const partOf = depth === 0 ? "" : (parents.at(-2) ?? "");
      tasks.push({ line, fields, section, partOf, comments: [] });
    } else if (kind === "section") {
      counted.add("section");
      section = content;
      parents = [];
    } else if (kind === "note" && tasks.length > 0) {
      counted.add("comment");
      tasks.at(-1)?.comments.push(content);
    } else {
      // The first column contains a setting: "meta,view_style=list".
      counted.add(kind === "meta" ? "setting" : "other");
    }
  }
  return tasks.map(({ line, fields, section: within, partOf, comments }) => ({
    line,
    fields: [...names.map((_, index) => fields[index] ?? ""), within, partOf, comments.join("\n")],
  }));
}

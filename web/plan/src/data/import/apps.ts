/**
 * Recognizes the exports of other apps by the names of their columns.
 *
 * Each export becomes a table with the usual meanings of columns. A value that an app writes for
 * "nothing" (such as a priority of 0) becomes empty, so that no note repeats it.
 */
import { nameKey, type ColumnMeaning } from "./columns.js";
import { dayIn } from "./zone.js";

/** Reads one field of a row; columns are named by their {@link nameKey}. */
export type CellReader = (name: string) => string;

export interface AppFormat {
  readonly app: string;
  /** The columns by which the export is recognized: it must have all of them. */
  readonly recognisedBy: readonly string[];
  /** Meanings of columns that differ from the usual meaning of their names. */
  readonly meanings: Readonly<Record<string, ColumnMeaning>>;
  /** Conversions of fields, by column. */
  readonly rewrite: Readonly<Record<string, (value: string, cell: CellReader) => string>>;
  /** The columns that link an item to the item that it is a part of. */
  readonly parent?: { readonly id: string; readonly parentId: string };
}

const blank =
  (...nothings: string[]) =>
  (value: string): string =>
    nothings.includes(value.trim().toLowerCase()) ? "" : value;

const TODOIST: AppFormat = {
  app: "Todoist",
  recognisedBy: ["type", "content", "priority", "indent"],
  meanings: {
    type: "none",
    indent: "none",
    date: "due",
    deadline: "detail",
    comments: "detail",
    author: "none",
    "is collapsed": "none",
    "date lang": "none",
    "deadline lang": "none",
    timezone: "none",
    "duration unit": "none",
  },
  rewrite: {
    // The lowest priority is the default, which every task has.
    priority: blank("4"),
    duration: (value, cell) =>
      blank("", "none")(value) && `${value} ${cell("duration unit")}`.trim(),
  },
};

const TICKTICK_STATUS: Readonly<Record<string, string>> = {
  "0": "",
  "1": "completed",
  "2": "completed",
  "-1": "won’t do",
};
const TICKTICK_PRIORITY: Readonly<Record<string, string>> = {
  "0": "",
  "1": "low",
  "3": "medium",
  "5": "high",
};

/** Reads a time of TickTick; an item's day is the day of that time in the item's own time zone. */
function tickTickDay(value: string, cell: CellReader): string {
  return dayIn(value, cell("timezone"), cell("is all day").trim().toLowerCase() === "true");
}

const TICKTICK: AppFormat = {
  app: "TickTick",
  recognisedBy: ["list name", "title", "content", "due date", "status"],
  meanings: {
    content: "note",
    "folder name": "detail",
    kind: "none",
    "is check list": "none",
    "created time": "none",
    timezone: "none",
    "is all day": "none",
    "is floating": "none",
    "column order": "none",
    "view mode": "none",
    projectkind: "none",
  },
  rewrite: {
    content: (value) => value.replace(/\r\n?/g, "\n"),
    "due date": tickTickDay,
    "start date": (value, cell) => (value === cell("due date") ? "" : tickTickDay(value, cell)),
    status: (value) => TICKTICK_STATUS[value.trim()] ?? value,
    "completed time": (value, cell) =>
      cell("status").trim() === "0" ? "" : dayIn(value, cell("timezone"), true),
    priority: (value) => TICKTICK_PRIORITY[value.trim()] ?? value,
    "column name": blank("not sectioned"),
  },
  parent: { id: "taskid", parentId: "parentid" },
};

const ASANA: AppFormat = {
  app: "Asana",
  recognisedBy: ["task id", "completed at", "name", "section column"],
  meanings: { "start date": "detail", "assignee email": "none" },
  rewrite: {},
};

/** Microsoft To Do has no export of its own; tasks are exported through Outlook. */
const TO_DO: AppFormat = {
  app: "Microsoft To Do",
  recognisedBy: ["subject", "due date", "date completed", "% complete"],
  meanings: {
    "start date": "detail",
    categories: "detail",
    "% complete": "none",
    "reminder on off": "none",
    "total work": "none",
    "actual work": "none",
    mileage: "none",
    private: "none",
    role: "none",
    "schedule+ priority": "none",
    sensitivity: "none",
  },
  rewrite: {
    ...Object.fromEntries(
      ["start date", "due date", "date completed", "reminder date"].map((name) => [
        name,
        blank("0/0/00", "0/0/0000"),
      ]),
    ),
    "reminder date": (value, cell) => (isOff(cell("reminder on off")) ? "" : value),
    "reminder time": (value, cell) => (isOff(cell("reminder on off")) ? "" : value),
    priority: blank("normal"),
  },
};

function isOff(value: string): boolean {
  return /^(false|off|0|)$/i.test(value.trim());
}

const FORMATS: readonly AppFormat[] = [TODOIST, TICKTICK, ASANA, TO_DO];

export function formatOf(names: readonly string[]): AppFormat | undefined {
  const keys = new Set(names.map(nameKey));
  return FORMATS.find(({ recognisedBy }) => recognisedBy.every((name) => keys.has(name)));
}

/** Tests the import of files from real apps and spreadsheets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withMeaning, type ColumnMeaning } from "../../plan/src/data/import/columns.js";
import { readFile } from "../../plan/src/data/import/read.js";
import type { ImportFile, RecordKind } from "../../plan/src/data/import/table.js";
import {
  understand,
  type ImportChoices,
  type ImportedItem,
  type ParsedImport,
} from "../../plan/src/data/import/understand.js";

interface TestImport {
  readonly file: ImportFile;
  readonly understood: ParsedImport;
}

/** Reads a file as the dialog does before the user changes anything. */
function importOf(content: string | Uint8Array, choices: Partial<ImportChoices> = {}): TestImport {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const file = readFile(bytes);
  const meanings = file.columns.map(({ meaning }) => meaning);
  const all = { meanings, dayOrder: undefined, locale: "en-US", ...choices };
  return { file, understood: understand(file, all) };
}

function itemOf(title: string, rest: Partial<ImportedItem> = {}): ImportedItem {
  return { title, note: "", due: null, list: undefined, done: false, doneOn: undefined, ...rest };
}

function counts(file: ImportFile): Partial<Record<RecordKind, number>> {
  return Object.fromEntries(file.counted);
}

test("Plan's own columns, in any order, by their usual names", () => {
  const { understood } = importOf(
    "Completed,Task,Due date,Project,Notes\nyes,Milk,2027-03-12,Home,two\n,Bread,,,\n,,,,x\n",
  );
  assert.deepEqual(understood.items, [
    itemOf("Milk", { note: "two", due: "2027-03-12", list: "Home", done: true }),
    itemOf("Bread"),
  ]);
  assert.deepEqual(understood.untitled, [4]);
});

test("without a heading the columns are in the order of Plan's export", () => {
  const { file, understood } = importOf("Milk,two,12.03.2027,Home,0\nBread\n");
  assert.equal(file.hasHeading, false);
  assert.deepEqual(understood.items, [
    itemOf("Milk", { note: "two", due: "2027-03-12", list: "Home" }),
    itemOf("Bread"),
  ]);
});

test("status words: open work never becomes finished work", () => {
  const open = ["In progress", "Not started", "Needs action", "Incomplete", "Backlog", "Open"];
  const others = ["Waiting", "On hold", "Cancelled", "0", "No", "FALSE", "Doing", "2", ""];
  const done = ["done", "Completed", "COMPLETE", "x", "Yes", "TRUE", "1", "checked", "✔️"];
  const rows = [...open, ...others, ...done].map((word, index) => `${word},Item ${index}`);
  const { understood } = importOf(`Status,Title\n${rows.join("\n")}\n`);
  const finished = understood.items.filter((item) => item.done);
  assert.equal(finished.length, done.length);
  assert.ok(understood.items.slice(0, open.length + others.length).every((item) => !item.done));
  // A status that says more than "open" is kept in the note.
  assert.equal(understood.items[0]?.note, "Status: In progress");
  assert.equal(understood.items[1]?.note, "");
  assert.deepEqual(
    understood.statuses.filter(({ isDone }) => isDone).map(({ word }) => word),
    done,
  );
});

test("a British file: one day above 12 settles the whole column", () => {
  const { understood } = importOf("Task,Due\nA,03/04/2027\nB,13/04/2027\nC,3/4/27\nD,31/02/2027\n");
  assert.deepEqual(
    understood.items.map(({ due }) => due),
    ["2027-04-03", "2027-04-13", "2027-04-03", null],
  );
  assert.equal(understood.due.doubtful, undefined);
  assert.deepEqual(understood.due.unread, ["31/02/2027"]);
  assert.equal(understood.items[3]?.note, "Due: 31/02/2027");
});

test("dates that could be either: the locale guesses, the user decides", () => {
  const csv = "Task,Due\nA,03/04/2027\nB,05-06-2027\n";
  const dues = (choices: Partial<ImportChoices>): unknown =>
    importOf(csv, choices).understood.items.map(({ due }) => due);
  assert.equal(importOf(csv).understood.due.doubtful, "03/04/2027");
  assert.deepEqual(dues({ locale: "en-US" }), ["2027-03-04", "2027-05-06"]);
  assert.deepEqual(dues({ locale: "en-GB" }), ["2027-04-03", "2027-06-05"]);
  assert.deepEqual(dues({ locale: "en-US", dayOrder: "dayFirst" }), ["2027-04-03", "2027-06-05"]);
});

test("a column that contradicts itself: the majority counts, the rest is counted", () => {
  const csv = "Task,Due\nA,13/04/2027\nB,14/04/2027\nC,04/15/2027\nD,01/02/2027\n";
  const { understood } = importOf(csv);
  assert.equal(understood.due.order, "dayFirst");
  assert.equal(understood.due.doubtful, "01/02/2027");
  assert.deepEqual(understood.due.unread, ["04/15/2027"]);
});

test("dates in words, of several languages, and year first", () => {
  const texts = {
    "12 March 2027": "2027-03-12",
    "Mar 12, 2027": "2027-03-12",
    "12-Mar-27": "2027-03-12",
    "Friday, 12th of March 2027": "2027-03-12",
    "2027/03/12": "2027-03-12",
    "2027.3.12": "2027-03-12",
    "12. März 2027": "2027-03-12",
    "mar. 12 mai 2027": "2027-05-12",
    "12 de marzo de 2027": "2027-03-12",
    "12 марта 2027": "2027-03-12",
    "2027年3月12日": "2027-03-12",
    "20270312": "2027-03-12",
    "2027-03-12T00:00:00Z": "2027-03-12",
  };
  const rows = Object.keys(texts).map((text, index) => `Item ${index}\t${text}`);
  const { understood } = importOf(`Task\tDue\n${rows.join("\n")}\n`);
  assert.deepEqual(
    understood.items.map(({ due }) => due),
    Object.values(texts),
  );
  assert.ok(understood.items.every(({ note }) => note === ""));
});

test("no date is made up: what cannot be read is counted, and kept in the note", () => {
  const texts = [
    "soon",
    "every monday",
    "tomorrow",
    "12 March",
    "2027",
    "1/2",
    "13.13.2027",
    "W12",
  ];
  const rows = texts.map((text, index) => `Item ${index},${text}`);
  const { understood } = importOf(`Task,Due\n${rows.join("\n")}\nLast,2027-03-12 17:30\n`);
  assert.deepEqual(understood.due.unread, texts);
  assert.deepEqual(
    understood.items.slice(0, -1),
    texts.map((text, index) => itemOf(`Item ${index}`, { note: `Due: ${text}` })),
  );
  // Plan has no times of day.
  assert.deepEqual(
    understood.items.at(-1),
    itemOf("Last", { due: "2027-03-12", note: "Due: 2027-03-12 17:30" }),
  );
});

test("Excel's serial numbers are days", () => {
  const { understood } = importOf("Task;Due\nA;46458\nB;46458,5\nC;12\nD;99999\n");
  assert.deepEqual(
    understood.items.map(({ due, note }) => [due, note]),
    [
      ["2027-03-12", ""],
      ["2027-03-12", "Due: 46458,5"],
      [null, "Due: 12"],
      [null, "Due: 99999"],
    ],
  );
});

test("Excel on Windows: Windows-1252, semicolons, a German heading", () => {
  const text = "Aufgabe;Fällig;Erledigt;Priorität\r\nCafé réservé;05.03.2027;WAHR;hoch\r\n";
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  const { file, understood } = importOf(bytes, { locale: "de" });
  assert.equal(file.encoding, "windows-1252");
  assert.deepEqual(understood.items, [
    itemOf("Café réservé", { due: "2027-03-05", done: true, note: "Priorität: hoch" }),
  ]);
});

test("Excel's Unicode text: UTF-16 with a mark, and tabs", () => {
  const text = "\uFEFFTask\tDue\r\nПривет\t2027-03-12\r\n";
  const bytes = new Uint8Array(Uint16Array.from(text, (char) => char.charCodeAt(0)).buffer);
  const { file, understood } = importOf(bytes);
  assert.equal(file.encoding, "utf-16le");
  assert.deepEqual(understood.items, [itemOf("Привет", { due: "2027-03-12" })]);
});

const TICKTICK = `"Date: 2026-09-25+0000"
"Version: 7.1"
"Status: 
0 Normal
1 Completed
2 Archived"
"Folder Name","List Name","Title","Kind","Tags","Content","Is Check list","Start Date","Due Date",\
"Reminder","Repeat","Priority","Status","Created Time","Completed Time","Order","Timezone",\
"Is All Day","Is Floating","Column Name","Column Order","View Mode","taskId","parentId"
"Private","Home","Buy boots","TEXT","gear","Size 43","N","2026-10-01T22:00:00+0000",\
"2026-10-01T22:00:00+0000","","RRULE:FREQ=WEEKLY","5","0","2026-09-20T10:00:00+0000","","-1",\
"Europe/Berlin","true","false","Not sectioned","","list","1",""
"Private","Home","Waxed ones","TEXT","","","N","","","","","0","2","2026-09-20T10:00:00+0000",\
"2026-09-21T22:30:00+0000","-2","Europe/Berlin","","false","","","list","2","1"
"","Inbox","Call","TEXT","","","N","","2026-10-05T07:30:00+0000","","","0","-1","","","-3",\
"Europe/Berlin","false","false","","","list","3",""
`;

test("TickTick: lines before the table, moments of a zone, codes for status and priority", () => {
  const { file, understood } = importOf(TICKTICK);
  assert.equal(file.app, "TickTick");
  assert.deepEqual(counts(file), { setting: 3, heading: 1 });
  assert.deepEqual(understood.items, [
    itemOf("Buy boots", {
      due: "2026-10-02",
      list: "Home",
      note:
        "Size 43\n\nFolder Name: Private\nTags: gear\nRepeat: RRULE:FREQ=WEEKLY\n" +
        "Priority: high",
    }),
    itemOf("Waxed ones", {
      list: "Home",
      done: true,
      doneOn: "2026-09-22",
      note: "Folder Name: Private\nPart of: Buy boots",
    }),
    itemOf("Call", {
      list: "Inbox",
      due: "2026-10-05",
      note: "Due Date: 2026-10-05 09:30\nStatus: won’t do",
    }),
  ]);
});

const TODOIST = `TYPE,CONTENT,DESCRIPTION,IS_COLLAPSED,PRIORITY,INDENT,AUTHOR,RESPONSIBLE,DATE,\
DATE_LANG,TIMEZONE,DURATION,DURATION_UNIT,DEADLINE,DEADLINE_LANG
meta,view_style=list,,,,,,,,,,,,,
note,About the project,,,,,Kai (48151623),,,,,,,,
task,Repot the basil @garden,Terracotta pot,,1,1,Kai (48151623),,Oct 5 2026,en,Africa/Cairo,30,\
minute,,
task,Buy compost,,,4,2,Kai (48151623),,,en,Africa/Cairo,,None,,
note,Get the peat-free one,,,,,Kai (48151623),,,,,,,,
,,,,,,,,,,,,,,
section,Weekly,,,,,,,,,,,,,
task,Water the ferns,,,2,1,Kai (48151623),Mo,every monday,en,Africa/Cairo,None,None,Oct 9 2026,en
`;

test("Todoist: sections, sub-tasks, comments, priorities and repeats are kept in notes", () => {
  const { file, understood } = importOf(TODOIST);
  assert.equal(file.app, "Todoist");
  assert.deepEqual(counts(file), {
    ...{ heading: 1, setting: 1, other: 1, comment: 1, blank: 1, section: 1 },
  });
  assert.deepEqual(understood.items, [
    itemOf("Repot the basil @garden", {
      due: "2026-10-05",
      note: "Terracotta pot\n\nPriority: 1\nDuration: 30 minute",
    }),
    itemOf("Buy compost", {
      note: "Part of: Repot the basil @garden\nComments: Get the peat-free one",
    }),
    itemOf("Water the ferns", {
      note:
        "Priority: 2\nResponsible: Mo\nDeadline: Oct 9 2026\nSection: Weekly\n" +
        "Date: every monday",
    }),
  ]);
  assert.deepEqual(understood.due.unread, ["every monday"]);
});

test("Asana: a date of completion is done, an empty one is open", () => {
  const { file, understood } = importOf(
    `Task ID,Created At,Completed At,Last Modified,Name,Section/Column,Assignee,Assignee Email,\
Start Date,Due Date,Tags,Notes,Projects,Parent task,Blocked By (Dependencies)
1201,2026-01-05,2026-01-09,2026-01-09,Write the brief,To do,Ann,ann@example.org,,2026-01-10,,\
Two pages,Website,,
1202,2026-01-05,,2026-01-05,Draw it,Doing,,,2026-01-11,2026-01-20,design,,Website,\
Write the brief,Write the brief
`,
  );
  assert.equal(file.app, "Asana");
  assert.deepEqual(understood.items, [
    itemOf("Write the brief", {
      due: "2026-01-10",
      list: "Website",
      done: true,
      doneOn: "2026-01-09",
      note: "Two pages\n\nSection/Column: To do\nAssignee: Ann",
    }),
    itemOf("Draw it", {
      due: "2026-01-20",
      list: "Website",
      note:
        "Section/Column: Doing\nStart Date: 2026-01-11\nTags: design\n" +
        "Parent task: Write the brief\nBlocked By (Dependencies): Write the brief",
    }),
  ]);
  const left = ["Task ID", "Created At", "Last Modified", "Assignee Email"];
  assert.deepEqual(understood.leftColumns, left);
});

test("Microsoft To Do, as Outlook exports its tasks", () => {
  const { file, understood } = importOf(
    `"Subject","Start Date","Due Date","Reminder On/Off","Reminder Date","Reminder Time",\
"Date Completed","% Complete","Total Work","Actual Work","Billing Information","Categories",\
"Companies","Contacts","Mileage","Notes","Priority","Private","Role","Schedule+ Priority",\
"Sensitivity","Status"
"Pay the rent","","3/15/2027","True","3/15/2027","9:00:00 AM","","0","0","0",,"Home",,,,\
"By standing order","High","False",,,"Normal","In Progress"
"Book the train","","3/4/2027","False","0/0/00","","3/2/2027","1","0","0",,,,,,,"Normal","False",,,\
"Normal","Completed"
`,
  );
  assert.equal(file.app, "Microsoft To Do");
  assert.deepEqual(understood.items, [
    itemOf("Pay the rent", {
      due: "2027-03-15",
      note:
        "By standing order\n\nReminder Date: 3/15/2027\nReminder Time: 9:00:00 AM\n" +
        "Categories: Home\nPriority: High\nStatus: In Progress",
    }),
    itemOf("Book the train", { due: "2027-03-04", done: true, doneOn: "2027-03-02" }),
  ]);
});

test("iCalendar: to-dos with their folded and escaped texts; events are counted", () => {
  const { file, understood } = importOf(
    [
      ...["BEGIN:VCALENDAR", "VERSION:2.0", "X-WR-CALNAME:Garden", "BEGIN:VEVENT"],
      ...["SUMMARY:A party", "END:VEVENT", "BEGIN:VTODO", "UID:1"],
      ...["SUMMARY:Sow beans\\, peas and a very lo", " ng row of lettuce"],
      ...['DESCRIPTION;ALTREP="cid:x":Two rows\\nby the wall', "DUE;VALUE=DATE:20270312"],
      ...["PRIORITY:1", "RRULE:FREQ=YEARLY", "CATEGORIES:spring", "BEGIN:VALARM"],
      ...["TRIGGER:-PT15M", "DESCRIPTION:not the note", "END:VALARM", "END:VTODO"],
      ...["BEGIN:VTODO", "UID:2", "RELATED-TO:1", "SUMMARY:Dig", "STATUS:NEEDS-ACTION"],
      ...["DUE;TZID=Europe/Berlin:20270310T090000", "END:VTODO", "BEGIN:VTODO"],
      ...["SUMMARY:Buy seeds", "STATUS:COMPLETED", "COMPLETED:20270101T110000Z", "END:VTODO"],
      ...["BEGIN:VTODO", "SUMMARY:Cut", "STATUS:IN-PROCESS", "END:VTODO", "END:VCALENDAR", ""],
    ].join("\r\n"),
  );
  assert.equal(file.app, "iCalendar");
  assert.deepEqual(counts(file), { other: 1 });
  const list = "Garden";
  assert.deepEqual(understood.items, [
    itemOf("Sow beans, peas and a very long row of lettuce", {
      list,
      due: "2027-03-12",
      note:
        "Two rows\nby the wall\n\nPriority: high\nRepeat: FREQ=YEARLY\nReminder: -PT15M\n" +
        "Categories: spring",
    }),
    itemOf("Dig", {
      list,
      due: "2027-03-10",
      note: "Part of: Sow beans, peas and a very long row of lettuce\nDue: 2027-03-10T09:00",
    }),
    itemOf("Buy seeds", { list, done: true, doneOn: "2027-01-01" }),
    itemOf("Cut", { list, note: "Status: IN-PROCESS" }),
  ]);
});

test("a quote that is not closed, other kinds of files, and nothing at all are told", () => {
  const flaw = (content: string | Uint8Array): unknown => {
    try {
      importOf(content);
    } catch (error) {
      return (error as { flaw?: unknown }).flaw;
    }
    return undefined;
  };
  assert.deepEqual(flaw('Task,Note\nMilk,"two\nBread,\n'), { kind: "openQuote", line: 2 });
  const workbook = Uint8Array.from("PK\x03\x04\x14\0\x06\0", (char) => char.charCodeAt(0));
  assert.deepEqual(flaw(workbook), { kind: "foreign", what: "an Excel workbook or a ZIP archive" });
  const noise = Uint8Array.from({ length: 500 }, (_, index) => (index * 37) % 256);
  assert.deepEqual(flaw(noise), { kind: "foreign", what: undefined });
  assert.deepEqual(flaw('{"tasks": []}'), { kind: "foreign", what: "a JSON file" });
  assert.deepEqual(flaw("<!DOCTYPE html><p>Sign in"), { kind: "foreign", what: "a web page" });
  assert.deepEqual(flaw("\n \n".trim()), { kind: "empty" });
});

test("two columns of one name: neither is lost, and the user can change what they mean", () => {
  const csv = "Title,Notes,Notes,Due,Due,ID\nMilk,one,two,2027-03-12,soon,7\n";
  const { file, understood } = importOf(csv);
  assert.deepEqual(understood.items, [
    itemOf("Milk", { note: "one\n\ntwo\n\nDue: soon", due: "2027-03-12" }),
  ]);
  assert.deepEqual(understood.leftColumns, ["ID"]);
  let meanings: ColumnMeaning[] = file.columns.map(({ meaning }) => meaning);
  meanings = withMeaning(withMeaning(meanings, 1, "title"), 5, "detail");
  assert.deepEqual(meanings, ["detail", "title", "note", "due", "detail", "detail"]);
  const [item] = understand(file, { meanings, dayOrder: undefined, locale: "en" }).items;
  assert.equal(item?.title, "one");
  assert.equal(item?.note, "two\n\nTitle: Milk\nDue: soon\nID: 7");
});

test("10,000 rows are read, and each is there", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => `Item ${i},${(i % 28) + 1}/3/2027,Open`);
  const { understood } = importOf(`Task,Due,Status\n${rows.join("\n")}\n`);
  assert.equal(understood.items.length, 10_000);
  assert.deepEqual(understood.items.at(-1), itemOf("Item 9999", { due: "2027-03-04" }));
});

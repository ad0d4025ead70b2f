/** Tests the import dialog of Plan: the preview, changes to it, and the imported items. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { bed } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import { openPlan, type PlanScreen } from "./plan/screen.js";

const here = bed();

test("a spreadsheet: dates are asked about, a column is changed, nothing is lost", async () => {
  const plan = await openPlan(await here.device());
  const dialog = await choose(
    plan,
    "garden.csv",
    "Task,When,Status,Who,Ref\n" +
      "Sow beans,03/04/2027,In progress,Ann,7\n" +
      "Dig,soon,Not started,,8\n" +
      "Buy seeds,05/04/2027,Completed,,9\n" +
      ",06/04/2027,,,10\n",
  );
  const preview = dialog.getByTestId("import-preview");
  await expect(preview).toHaveText("3 items: 2 open, 1 done, 1 without a date");
  const remarks = dialog.getByTestId("import-remarks");
  await expect(remarks).toHaveText("Done: “Completed” (1).");
  await expect(remarks).toHaveText("Open: “In progress” (1), “Not started” (1).");
  await expect(remarks).toHaveText("1 date could not be read and will be kept in the notes: soon.");
  await expect(remarks).toHaveText("1 row without a title will be skipped: line 5.");
  await expect(remarks).toHaveText("Columns kept in the notes: Who, Ref.");

  // The device's locale is American, the file's is not.
  const order = dialog.getByTestId("day-order");
  await expect(order).toHaveText("In this file, 03/04/2027 means");
  assert.ok(await order.getByRole("radio", { name: "4 March 2027" }).isChecked());
  await order.getByText("3 April 2027").click();
  await dialog.getByLabel("Ref").selectOption("Skip");
  await dialog.getByLabel("Who").selectOption("List");
  await expect(remarks).toHaveText("Columns skipped: Ref.");
  await expect(preview).toHaveText("3 items in 1 list");

  await dialog.getByRole("button", { name: "Import 3 items" }).click();
  await expect(plan.toast).toHaveText("Imported 3 items");
  await plan.goTo("Ann");
  await plan.item("Sow beans").getByRole("button").click();
  assert.equal(await plan.page.getByLabel("Due: Apr 3, 2027").inputValue(), "2027-04-03");
  assert.equal(await plan.page.getByLabel("Note").inputValue(), "Status: In progress");
  await plan.page.getByLabel("Close item").click();
  // Items that name no list go to one with the file's name.
  await plan.goTo("garden");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Dig"]));
  await plan.page.getByRole("button", { name: "Done" }).click();
  await expect(plan.item("Buy seeds")).toBeVisible();
});

test("what cannot be read is said, with its line, and can be corrected", async () => {
  const plan = await openPlan(await here.device());
  const dialog = await choose(plan, "broken.csv", 'Task,Note\nMilk,\nBread,"half\nEggs,\n');
  const alert = dialog.getByRole("alert");
  await expect(alert).toHaveText("Line 3 of the file has an opening quotation mark");
  await expect(dialog.getByRole("button", { name: "Import", exact: true })).toBeDisabled();
  await setFile(plan, "plan.xlsx", "PK\x03\x04");
  await expect(alert).toHaveText("This is an Excel workbook or a ZIP archive.");
  await setFile(plan, "broken.csv", 'Task,Note\nMilk,\nBread,"half"\nEggs,\n');
  await expect(dialog.getByTestId("import-preview")).toHaveText("3 items: 3 open");
  await dialog.getByLabel("The first line contains column names").uncheck();
  await expect(dialog.getByTestId("import-preview")).toHaveText("4 items");
});

test("a calendar and an app's export are recognised, and say what they leave out", async () => {
  const plan = await openPlan(await here.device());
  const dialog = await choose(
    plan,
    "calendar.ics",
    "BEGIN:VCALENDAR\r\nX-WR-CALNAME:Garden\r\nBEGIN:VEVENT\r\nSUMMARY:Party\r\nEND:VEVENT\r\n" +
      "BEGIN:VTODO\r\nSUMMARY:Dig\r\nDUE;VALUE=DATE:20270312\r\nEND:VTODO\r\nEND:VCALENDAR\r\n",
  );
  await expect(dialog.getByTestId("import-preview")).toHaveText("1 item from iCalendar in 1 list");
  await expect(dialog.getByTestId("import-remarks")).toHaveText(
    "Skipped: 1 entry that isn’t a task.",
  );
  await setFile(
    plan,
    "Home.csv",
    "TYPE,CONTENT,PRIORITY,INDENT,DATE\nsection,Weekly,,,\ntask,Water,1,1,every monday\n",
  );
  await expect(dialog.getByTestId("import-preview")).toHaveText("1 item from Todoist");
  await expect(dialog.getByTestId("import-remarks")).toHaveText("1 section");
  await dialog.getByRole("button", { name: "Import 1 item" }).click();
  await plan.goTo("Home");
  await plan.item("Water").getByRole("button").click();
  const note = "Priority: 1\nSection: Weekly\nDate: every monday";
  assert.equal(await plan.page.getByLabel("Note").inputValue(), note);
});

async function choose(plan: PlanScreen, name: string, content: string): Promise<Locator> {
  await plan.openSettings();
  const settings = plan.page.getByTestId("settings");
  await settings.getByRole("button", { name: "Import a file" }).click();
  await setFile(plan, name, content);
  return plan.page.getByTestId("import");
}

async function setFile(plan: PlanScreen, name: string, content: string): Promise<void> {
  const file = { name, mimeType: "text/plain", buffer: Buffer.from(content, "latin1") };
  await plan.page.locator("input[type=file]").setInputFiles(file);
}

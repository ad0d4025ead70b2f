/**
 * Tests the Plan app in a browser: the actions of one user, from the first item to the second
 * device.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { bed } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import { openPlan, planOn, type PlanScreen } from "./plan/screen.js";

const here = bed();

test("without an account: items, lists, search, keys, undo; kept over a reload", async () => {
  const device = await here.device();
  const plan = await openPlan(device, "/");
  const { page } = plan;
  await expect(plan.pill).toHaveText("Only on this device");
  await plan.add("Buy milk");
  await plan.goTo("All");
  await plan.addList("Trip");
  for (const title of ["Third", "Second", "First"]) await plan.add(title);
  assert.deepEqual(await plan.titles(), ["First", "Second", "Third"]);

  // With the keyboard alone: down to the second item, check it off, undo.
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowDown");
  await eventually(async () => assert.match(await focused(page), /Second/));
  await page.keyboard.press("x");
  await expect(plan.toast).toHaveText("Done: “Second”");
  assert.deepEqual(await plan.titles(), ["First", "Third"]);
  await page.keyboard.press("Control+z");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["First", "Second", "Third"]));
  await page.keyboard.press("Control+Shift+z");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["First", "Third"]));
  await eventually(async () => assert.match(await focused(page), /Third/));
  await page.keyboard.press("Alt+ArrowUp");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Third", "First"]));
  await eventually(async () => assert.match(await focused(page), /Third/));
  await page.keyboard.press("Delete");
  await expect(plan.toast).toHaveText("Deleted “Third”");
  await plan.toast.getByRole("button", { name: "Undo" }).click();
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Third", "First"]));

  // A note and a due date; the search, which covers all lists, finds the item.
  await plan.openItem("Third");
  await page.getByLabel("Note").fill("a rare word");
  await page.getByRole("button", { name: "Tomorrow" }).click();
  await page.getByLabel("Close item").click();
  await page.keyboard.press("/");
  await page.keyboard.type("RARE thi");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Third"]));
  await page.keyboard.press("Escape");
  await plan.goTo("Upcoming");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Third"]));

  await page.reload();
  const again = await planOn(page);
  await again.goTo("Trip");
  await eventually(async () => assert.deepEqual(await again.titles(), ["Third", "First"]));
  await page.keyboard.press("?");
  await expect(page.getByTestId("keys")).toBeVisible();
});

test("items are dragged: up and down, and to another list", async () => {
  const plan = await openPlan(await here.device());
  await plan.addList("Other");
  await plan.addList("Drag");
  for (const title of ["D", "C", "B", "A"]) await plan.add(title);
  await drag(plan.item("A"), plan.item("C"), "below");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["B", "C", "A", "D"]));
  await drag(plan.item("D"), plan.item("B"), "above");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["D", "B", "C", "A"]));
  await drag(plan.item("C"), plan.page.getByRole("link", { name: "Other" }), "onto");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["D", "B", "A"]));
  await plan.goTo("Other");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["C"]));
  await plan.page.keyboard.press("Control+z");
  await eventually(async () => assert.deepEqual(await plan.titles(), []));
});

test("two devices with a phrase: an edit is on the other screen without a reload", async () => {
  const first = await openPlan(await here.device());
  await first.addList("Shared");
  await first.add("Made before the account");
  const phrase = await first.signUp("anna", "e2ee");
  assert.equal(phrase?.split(" ").length, 24);
  await expect(first.pill).toHaveText("Synced");

  const second = await openPlan(await here.device());
  await second.signIn("anna");
  const ask = second.page.getByTestId("enter-phrase");
  await expect(ask).toBeVisible();
  await second.enterPhrase("these are no words of a phrase");
  await expect(ask.getByRole("alert")).toHaveText("not a valid recovery phrase");
  await second.enterPhrase(`${"abandon ".repeat(23)}art`);
  await expect(ask.getByRole("alert")).toHaveText("This recovery phrase doesn’t match your items");
  await second.enterPhrase(phrase ?? "");
  await expect(ask).toBeGone();
  await second.goTo("Shared");
  await expect(second.item("Made before the account")).toBeVisible();
  await expect(second.pill).toHaveText("Synced");

  await first.add("From the first");
  await expect(second.item("From the first")).toBeVisible();
  await second.item("From the first").getByRole("checkbox").click();
  await expect(first.item("From the first")).toBeGone();
  await expect(first.pill).toHaveText("Synced");
  await first.openSync();
  await expect(first.page.getByTestId("sync-status")).toHaveText(/On the server/);
  await expect(first.page.getByTestId("devices").getByRole("listitem")).toHaveCount(2);
});

test("offline and back: both go on, and come to hold the same", async () => {
  const devices = [await here.device(), await here.device()] as const;
  const first = await openPlan(devices[0]);
  await first.signUp("otto", "plaintext");
  await first.addList("Both");
  await first.add("Common");
  await expect(first.pill).toHaveText("Synced");
  const second = await openPlan(devices[1]);
  await second.signIn("otto");
  await second.goTo("Both");
  await expect(second.item("Common")).toBeVisible();
  for (const device of devices) {
    device.expectErrors(/ERR_INTERNET_DISCONNECTED|Failed to load/);
    await device.context.setOffline(true);
  }
  await first.add("From the first");
  await second.add("From the second");
  await expect(first.pill).toHaveText(/Offline · \d+ to sync/);
  for (const device of devices) await device.context.setOffline(false);
  const wanted = ["Common", "From the first", "From the second"];
  for (const plan of [first, second]) {
    await eventually(async () => assert.deepEqual((await plan.titles()).sort(), wanted));
    await expect(plan.pill).toHaveText("Synced");
  }
  assert.deepEqual(await first.titles(), await second.titles());
});

test("two devices change one title while apart: the lost one is kept, and put back", async () => {
  const devices = [await here.device(), await here.device()] as const;
  const first = await openPlan(devices[0]);
  await first.signUp("cleo", "plaintext");
  await first.add("Call mum");
  await expect(first.pill).toHaveText("Synced");
  const second = await openPlan(devices[1]);
  await second.signIn("cleo");
  await expect(second.item("Call mum")).toBeVisible();
  for (const device of devices) {
    device.expectErrors(/ERR_INTERNET_DISCONNECTED|Failed to load/);
    await device.context.setOffline(true);
  }
  await rename(first, "Call mum", "Call mum on Sunday");
  await rename(second, "Call mum", "Call mum tonight");
  for (const device of devices) await device.context.setOffline(false);
  for (const plan of [first, second]) await expect(plan.item("Call mum tonight")).toBeVisible();
  await expect(first.pill).toHaveText("Synced");
  await first.openSync();
  await first.page.getByRole("button", { name: "Lost edits" }).click();
  const conflict = first.page.getByTestId("conflict");
  await expect(conflict).toHaveText("Call mum on Sunday");
  await expect(conflict.getByRole("button", { name: "Keep current" })).toBeVisible();
  await conflict.getByRole("button", { name: "Restore this edit" }).click();
  await first.close();
  await expect(second.item("Call mum on Sunday")).toBeVisible();
});

test("with a finger: an item is dragged by its grip", async () => {
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const device = await here.device(phone);
  const plan = await openPlan(device);
  for (const title of ["C", "B", "A"]) await plan.add(title);
  await plan.page.getByRole("button", { name: "Lists", exact: true }).click();
  await plan.goTo("Inbox");
  await expect(plan.items).toHaveCount(3);
  const [grip, end] = [
    await plan.item("A").locator(".row-grip").boundingBox(),
    await plan.item("C").boundingBox(),
  ];
  assert.ok(grip !== null && end !== null);
  const session = await device.context.newCDPSession(plan.page);
  const x = grip.x + grip.width / 2;
  const from = grip.y + grip.height / 2;
  const to = end.y + end.height * 0.9;
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", y?: number): Promise<unknown> =>
    session.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: y === undefined ? [] : [{ x, y }],
    });
  await touch("touchStart", from);
  for (let step = 1; step <= 5; step += 1)
    await touch("touchMove", from + ((to - from) * step) / 5);
  await touch("touchEnd");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["B", "C", "A"]));
});

test("10,000 items: imported, cancelled, undone, scrolled, searched, exported", async () => {
  const plan = await openPlan(await here.device());
  const { page } = plan;
  const rows = Array.from({ length: 10_000 }, (_, i) => `"Item ${i}",note ${i},,List ${i % 4},`);
  const file = { name: "plan.csv", mimeType: "text/csv" };
  const buffer = Buffer.from(`title,note,due,list,done\r\n${rows.join("\r\n")}`);
  const choose = async (): Promise<void> => {
    await plan.openSettings();
    await page.getByTestId("settings").getByRole("button", { name: "Import a file" }).click();
    await page.locator("input[type=file]").setInputFiles({ ...file, buffer });
    await page.getByRole("button", { name: "Import 10,000 items" }).click();
  };
  await choose();
  await expect(page.getByTestId("import")).toHaveText(/[1-9][\d,]* of 10,000 items/);
  await page.getByRole("button", { name: "Cancel import" }).click();
  await expect(plan.toast).toHaveText("Import canceled, nothing was added");
  await plan.close();
  await expect(plan.items).toHaveCount(0);

  await choose();
  await expect(plan.toast).toHaveText("Imported 10,000 items");
  await plan.goTo("List 1");
  await expect(plan.item("Item 1")).toBeVisible();
  await page.getByTestId("scroller").evaluate((element) => element.scrollTo(0, 1e9));
  await expect(plan.item("Item 9997")).toBeVisible();
  assert.ok((await plan.items.count()) < 100, "only what is on the screen exists");
  await page.keyboard.press("/");
  await page.keyboard.type("note 4321");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Item 4321"]));
  await page.keyboard.press("Escape");

  await plan.openSettings();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as CSV" }).click();
  const exported = await readFile(await (await download).path(), "utf8");
  assert.equal(exported.trim().split("\r\n").length, 10_001);
  await plan.close();

  await page.keyboard.press("Control+z");
  await plan.goTo("All");
  await expect(page.getByRole("heading", { name: "Nothing to do yet" })).toBeVisible();
});

async function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? "");
}

async function rename(plan: PlanScreen, from: string, to: string): Promise<void> {
  await plan.item(from).getByRole("button").click();
  const { page } = plan;
  await page.getByLabel("Title", { exact: true }).fill(to);
  await page.keyboard.press("Enter");
  await page.getByLabel("Close item").click();
  await expect(plan.item(to)).toBeVisible();
}

/** Drags with the mouse in steps, as a hand does. */
async function drag(from: Locator, to: Locator, where: "above" | "below" | "onto"): Promise<void> {
  const [start, end] = [await from.boundingBox(), await to.boundingBox()];
  assert.ok(start !== null && end !== null);
  const { mouse } = from.page();
  const share = { above: 0.1, below: 0.9, onto: 0.5 }[where];
  await mouse.move(start.x + 100, start.y + start.height / 2);
  await mouse.down();
  await mouse.move(start.x + 110, start.y + start.height / 2 + 10);
  await mouse.move(end.x + 100, end.y + end.height * share, { steps: 5 });
  await mouse.up();
}

/**
 * Tests typing while another device changes the same text: no text is lost.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { bed } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import {
  openPlan,
  planOn,
  prependToWorker,
  REFUSED,
  signedUp,
  type PlanScreen,
} from "./plan/screen.js";

const here = bed();

/** Opens two devices of an account; each has the item's panel open. */
async function pair(login: string): Promise<readonly [PlanScreen, PlanScreen]> {
  const one = await signedUp(await here.device({ userAgent: "Chrome/1 Linux" }), login);
  const device = await here.device({ userAgent: "Firefox/1 Android" });
  device.expectErrors(REFUSED);
  const two = await openPlan(device);
  await two.signIn(login);
  for (const plan of [one, two]) await plan.item(`Of ${login}`).getByRole("button").click();
  return [one, two];
}

const note = ({ page }: PlanScreen): Locator => page.getByTestId("item-panel").getByLabel("Note");

async function writeNote(plan: PlanScreen, text: string): Promise<void> {
  await note(plan).fill(text);
  await note(plan).blur();
}

function noteIs(plan: PlanScreen, text: string): Promise<void> {
  return eventually(async () => assert.equal(await note(plan).inputValue(), text));
}

/** Lets `one` type while a note of `two` arrives; returns the question that `one` sees. */
async function typeOver(one: PlanScreen, two: PlanScreen): Promise<Locator> {
  await note(one).fill("typed by one");
  await writeNote(two, "of two");
  const contest = one.page.getByTestId("contest");
  await expect(contest).toHaveText(/Changed on Firefox on Android while you were editing:.*of two/);
  await noteIs(one, "typed by one");
  return contest;
}

test("the field says what changed meanwhile: mine, theirs, or both", async () => {
  const [one, two] = await pair("dora");
  for (const [choice, outcome] of [
    ["Keep mine", "typed by one"],
    ["Keep theirs", "of two"],
    ["Keep both", "of two\n\ntyped by one"],
  ] as const) {
    await writeNote(one, "at first");
    await noteIs(two, "at first");
    const contest = await typeOver(one, two);
    await contest.getByRole("button", { name: choice }).click();
    await expect(contest).toBeGone();
    await noteIs(one, outcome);
    await noteIs(two, outcome);
  }
  await one.page.getByRole("button", { name: "Close item" }).click();
  await expect(one.pill).toHaveText("Synced");
  await one.openSettings();
  await one.page.getByRole("button", { name: "Lost edits" }).click();
  await expect(one.page.getByText("No lost edits")).toBeVisible();
});

test("closed without an answer: mine is written, theirs is among the lost edits", async () => {
  const [one, two] = await pair("dirk");
  await writeNote(one, "at first");
  await noteIs(two, "at first");
  await typeOver(one, two);
  await one.page.getByRole("button", { name: "Close item" }).click();
  await noteIs(two, "typed by one");
  for (const plan of [one, two]) {
    await expect(plan.page.getByTestId("losses")).toHaveText("1 lost edit");
  }
  await one.openSettings();
  await one.page.getByRole("button", { name: "Lost edits" }).click();
  const card = one.page.getByTestId("conflict");
  await expect(card).toHaveText(/Of dirk.*Lost: Firefox on Android.*of two/);
});

test("a tab that is closed while somebody types loses nothing", async () => {
  const device = await here.device();
  const plan = await openPlan(device);
  await plan.add("An item");
  await plan.item("An item").getByRole("button").click();
  await note(plan).fill("typed, and not left");
  await expect(plan.page.locator(".panel-note[data-kept=true]")).toBeVisible();
  await plan.page.close();
  const again = await openPlan(device);
  await again.item("An item").getByRole("button").click();
  await noteIs(again, "typed, and not left");
});

test("an item that is deleted while somebody types comes back with the text", async () => {
  const [one, two] = await pair("dana");
  await note(one).fill("typed by one");
  await two.page.getByTestId("item-panel").getByRole("button", { name: "Delete" }).click();
  await expect(one.toast).toHaveText("restored with your text");
  await expect(two.item("Of dana")).toBeVisible();
  await one.item("Of dana").getByRole("button").click();
  await noteIs(one, "typed by one");
});

/**
 * Makes a worker hold its answers from the deletion of a draft on, until the page sends "release".
 */
const HELD_ANSWERS = `
  const test = new BroadcastChannel("test");
  const post = self.postMessage.bind(self);
  let held;
  addEventListener("message", ({ data }) => {
    if (held !== undefined || !JSON.stringify(data).includes("DELETE FROM draft")) return;
    held = [];
    self.postMessage = (...message) => void held.push(message);
    test.postMessage("held");
  });
  test.onmessage = () => {
    self.postMessage = post;
    for (const message of held.splice(0)) post(...message);
  };
`;

test("text that is being written is not stored as a draft again", async () => {
  const device = await here.device();
  await prependToWorker(device, HELD_ANSWERS);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.add("An item");
  await plan.openItem("An item");
  const isHeld = page.evaluate(
    () => new Promise((held) => (new BroadcastChannel("test").onmessage = held)).then(() => true),
  );
  await page.getByRole("button", { name: "Close item" }).hover();
  await note(plan).fill("typed");
  await page.mouse.down();
  await isHeld;
  // This timer fires after the one that stores typed text, which is set earlier and is shorter.
  await page.evaluate(() => new Promise((fired) => setTimeout(fired, 400)));
  await page.mouse.up();
  await page.evaluate(() => new BroadcastChannel("test").postMessage("release"));
  await plan.item("An item").getByRole("button").click();
  await page.getByTestId("item-panel").getByRole("button", { name: "Delete" }).click();
  await expect(plan.items).toHaveCount(0);
  await page.reload();
  const again = await planOn(page);
  await again.openSettings();
  await page.getByRole("button", { name: "Recently deleted" }).click();
  await expect(page.getByTestId("deleted-row")).toHaveText("An item");
});

/**
 * Tests that lost edits, deleted rows and hidden rows are shown and can be restored.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { bed, type BrowserDevice } from "./harness.js";
import { expect } from "./plan/expect.js";
import { openPlan, planOn, REFUSED, signedUp, type PlanScreen } from "./plan/screen.js";

const here = bed();

interface PlanPair {
  readonly one: PlanScreen;
  readonly two: PlanScreen;
  readonly devices: readonly [BrowserDevice, BrowserDevice];
}

/** Opens two devices of an account, both of which have its one item, "Of LOGIN". */
async function pair(login: string): Promise<PlanPair> {
  const first = await here.device({ userAgent: "Chrome/1 Linux" });
  const second = await here.device({ userAgent: "Firefox/1 Android" });
  const one = await signedUp(first, login);
  second.expectErrors(REFUSED);
  const two = await openPlan(second);
  await two.signIn(login);
  await expect(two.item(`Of ${login}`)).toBeVisible();
  return { one, two, devices: [first, second] };
}

/** Lets both devices act while they are offline, first `one`, then `two`. */
async function apart(
  { one, two, devices }: PlanPair,
  first: (plan: PlanScreen) => Promise<void>,
  second: (plan: PlanScreen) => Promise<void>,
): Promise<void> {
  await Promise.all(devices.map(({ context }) => context.setOffline(true)));
  await first(one);
  await expect(one.pill).toHaveText(/Offline · \d+ to sync/);
  await second(two);
  await expect(two.pill).toHaveText(/Offline · \d+ to sync/);
  await Promise.all(devices.map(({ context }) => context.setOffline(false)));
  await expect(one.pill).toHaveText("Synced");
  await expect(two.pill).toHaveText("Synced");
}

async function rename(plan: PlanScreen, from: string, to: string): Promise<void> {
  await plan.item(from).getByRole("button").click();
  const panel = plan.page.getByTestId("item-panel");
  await panel.getByLabel("Title").fill(to);
  await panel.getByLabel("Note").focus();
  await panel.getByRole("button", { name: "Close item" }).click();
  await expect(plan.item(to)).toBeVisible();
}

test("a lost edit has a mark, a card that says what happened, and can be let be", async () => {
  const both = await pair("lena");
  const { one, two } = both;
  await apart(
    both,
    (plan) => rename(plan, "Of lena", "By one"),
    (plan) => rename(plan, "Of lena", "By two"),
  );
  for (const plan of [one, two]) {
    await expect(plan.item("By two")).toBeVisible();
    await expect(plan.page.getByTestId("losses")).toHaveText("1 lost edit");
  }
  await one.openSync();
  const { page } = one;
  await page.getByTestId("sync").getByRole("button", { name: "Review" }).click();
  const card = page.getByTestId("conflict");
  await expect(card).toHaveText(/^By two.*Lost: Chrome on Linux.*By one/);
  await expect(card).toHaveText(/Current: Firefox on Android.*By two/);
  await card.getByRole("button", { name: "Keep current" }).click();
  await expect(page.getByText("No lost edits")).toBeVisible();
  await expect(page.getByTestId("losses")).toBeGone();
});

test("an edit that lost to a deletion says so, and brings the item back", async () => {
  const both = await pair("lotte");
  const { one, two } = both;
  await apart(
    both,
    (plan) => rename(plan, "Of lotte", "Better"),
    async (plan) => {
      await plan.item("Of lotte").getByRole("button").click();
      await plan.page.getByTestId("item-panel").getByRole("button", { name: "Delete" }).click();
    },
  );
  await expect(one.items).toHaveCount(0);
  await expect(one.page.getByTestId("losses")).toHaveText("1 lost edit");
  await one.openSettings();
  await one.page.getByRole("button", { name: "Lost edits" }).click();
  const card = one.page.getByTestId("conflict");
  await expect(card).toHaveText(/^Better.*Lost: Chrome on Linux.*Better/);
  await expect(card).toHaveText(/Current: Firefox on Android.*Deleted/);
  await card.getByRole("button", { name: "Restore with this edit" }).click();
  await one.close();
  await expect(one.item("Better")).toBeVisible();
  await expect(two.item("Better")).toBeVisible();
});

test("what was deleted is put back: without an account, and from another device", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.addList("Garden");
  await plan.add("Roses");
  await plan.openItem("Roses");
  const panel = plan.page.getByTestId("item-panel");
  await panel.getByLabel("Note").fill("red ones");
  await panel.getByRole("button", { name: "Close item" }).click();
  await plan.item("Roses").getByRole("button").click();
  await panel.getByRole("button", { name: "Delete" }).click();
  await expect(plan.items).toHaveCount(0);
  await plan.page.reload();
  const again = await planOn(plan.page);
  await again.openSettings();
  await again.page.getByRole("button", { name: "Recently deleted" }).click();
  const row = again.page.getByTestId("deleted-row");
  await expect(row).toHaveText("Roses");
  await row.getByRole("button", { name: "Restore" }).click();
  await expect(again.page.getByText("Nothing to restore")).toBeVisible();
  await again.close();
  await again.item("Roses").getByRole("button").click();
  assert.equal(await panel.getByLabel("Note").inputValue(), "red ones");

  const { one, two } = await pair("lars");
  await two.item("Of lars").getByRole("button").click();
  await two.page.getByTestId("item-panel").getByRole("button", { name: "Delete" }).click();
  await expect(one.items).toHaveCount(0);
  await one.openSettings();
  await one.page.getByRole("button", { name: "Recently deleted" }).click();
  const deleted = one.page.getByTestId("deleted-row");
  await expect(deleted).toHaveText(/Of lars.*Deleted.*on Firefox on Android/);
  await deleted.getByRole("button", { name: "Restore" }).click();
  await expect(two.item("Of lars")).toBeVisible();
});

test("an item that does not fit is hidden, listed, and shown with another value", async () => {
  const plan = await signedUp(await here.device(), "lisa");
  const file = join(here.server.folder, "lisa.db");
  const native = new DatabaseSync(file);
  native.exec(`CREATE TABLE item(
    id TEXT PRIMARY KEY NOT NULL, list_id TEXT, title TEXT, note TEXT, due TEXT,
    done_ms INTEGER, position TEXT, created_ms INTEGER)`);
  native.exec("INSERT INTO item VALUES ('x', '', NULL, 'from a script', NULL, NULL, 'a', 1)");
  native.close();
  await here.server.warren("track", file, "item");
  await here.server.sync(file, "lisa");
  await expect(plan.page.getByTestId("losses")).toHaveText("1 hidden item");
  await plan.openSync();
  const { page } = plan;
  await page.getByTestId("sync").getByRole("button", { name: "Review" }).click();
  const card = page.getByTestId("hidden-row");
  await expect(card).toHaveText("NOT NULL");
  await card.getByLabel("Title").fill("From a script");
  await card.getByRole("button", { name: "Save and show" }).click();
  await expect(card).toBeGone();
  await expect(page.getByTestId("losses")).toBeGone();
  await plan.close();
  await expect(plan.item("From a script")).toBeVisible();
});

/**
 * Tests the passcode: set, changed, removed and forgotten. Only the key of the file changes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { bed, PASSWORD } from "./harness.js";
import { expect } from "./plan/expect.js";
import { filesText, openPlan, planOn, REFUSED, typeWords, type PlanScreen } from "./plan/screen.js";

const here = bed();

const OLD = "open sesame";
const NEW = "close sesame";

type FormFields = Readonly<Record<string, string>>;

/** Opens the dialog from the settings, and fills it in. */
async function changePasscode(plan: PlanScreen, entry: RegExp, fields: FormFields): Promise<void> {
  const { page } = plan;
  await plan.openSettings();
  await page.getByTestId("settings").getByRole("button", { name: entry }).click();
  await fill(page, fields);
}

async function fill(page: Page, fields: FormFields): Promise<void> {
  const dialog = page.getByTestId("passcode");
  for (const [label, value] of Object.entries(fields)) {
    await dialog.getByLabel(label, { exact: true }).fill(value);
  }
  await dialog.getByRole("button", { name: /^(Set|Change|Remove) passcode$/ }).click();
}

const SET = { Passcode: OLD, "Confirm passcode": OLD };

async function unlock(page: Page, passcode: string): Promise<PlanScreen> {
  await tryPasscode(page, passcode);
  return planOn(page);
}

async function tryPasscode(page: Page, passcode: string): Promise<void> {
  const gate = page.getByTestId("locked");
  await gate.getByLabel("Passcode").fill(passcode);
  await gate.getByRole("button", { name: "Unlock", exact: true }).click();
}

test("it is set, changed and removed, also offline; a wrong one is refused", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.add("A secret plan");
  await device.context.setOffline(true);
  await changePasscode(plan, /with a passcode/, SET);
  await expect(plan.toast).toHaveText("encrypted on this device");
  await plan.add("Made after it");
  await device.context.setOffline(false);

  await page.reload();
  const gate = page.getByTestId("locked");
  await tryPasscode(page, "something else");
  await expect(gate.getByRole("alert")).toHaveText("Wrong passcode");
  const again = await unlock(page, OLD);
  await expect(again.item("A secret plan")).toBeVisible();
  await expect(again.item("Made after it")).toBeVisible();

  const wrong = { "Current passcode": "not it", "New passcode": NEW, "Confirm passcode": NEW };
  await changePasscode(again, /Change passcode/, wrong);
  const problem = page.getByTestId("passcode").getByRole("alert");
  await expect(problem).toHaveText("Wrong passcode");
  await fill(page, { "Current passcode": OLD });
  await expect(again.toast).toHaveText("Passcode changed");
  await page.reload();
  await tryPasscode(page, OLD);
  await expect(gate.getByRole("alert")).toHaveText("Wrong passcode");
  const changed = await unlock(page, NEW);
  await changePasscode(changed, /Remove passcode/, { "Current passcode": NEW });
  await expect(changed.toast).toHaveText("Passcode removed");
  await page.reload();
  await expect((await planOn(page)).item("A secret plan")).toBeVisible();
});

test("no plain text of what was there before is left in the files", async () => {
  const device = await here.device();
  // A page that shows an SVG has no icon.
  device.expectErrors(/favicon/);
  const plan = await openPlan(device);
  await plan.add("Nobody may read this");
  await changePasscode(plan, /with a passcode/, SET);
  await expect(plan.toast).toHaveText("encrypted on this device");
  // A page on which no worker has the file open.
  await plan.page.goto(new URL("/icon.svg", here.server.address).href);
  assert.equal((await filesText(plan.page)).includes("Nobody may read this"), false);
});

test("signed in, encrypted from end to end, unsent changes: all of it stays", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  const phrase = (await plan.signUp("paul", "e2ee")) ?? "";
  await plan.add("On the server");
  await expect(plan.pill).toHaveText("Synced");
  await device.context.setOffline(true);
  await plan.add("Not sent yet");
  await expect(plan.pill).toHaveText(/Offline/);

  await plan.openSettings();
  await page.getByTestId("settings").getByRole("button", { name: /with a passcode/ }).click();
  await typeWords(page, phrase);
  await page.getByTestId("passcode").getByRole("button", { name: "Continue" }).click();
  await fill(page, SET);
  await expect(plan.toast).toHaveText("encrypted on this device");
  await device.context.setOffline(false);
  await page.reload();
  const again = await unlock(page, OLD);
  await expect(again.item("On the server")).toBeVisible();
  await expect(again.item("Not sent yet")).toBeVisible();
  await expect(again.pill).toHaveText("Synced");
  await again.openSettings();
  await page.getByRole("button", { name: "Recovery phrase" }).click();
  const words = page.getByTestId("words").getByRole("listitem");
  await expect(words).toHaveCount(24);
  assert.equal((await words.allTextContents()).join(" "), phrase);

  const other = await here.device();
  other.expectErrors(REFUSED);
  const second = await openPlan(other);
  await second.signIn("paul", PASSWORD, phrase);
  await expect(second.item("Not sent yet")).toBeVisible();
});

test("a second tab asks for it, and so it does after it was changed in the first", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.add("Secret");
  await changePasscode(plan, /with a passcode/, SET);
  await expect(plan.toast).toHaveText("encrypted on this device");
  const tab = await device.open("/#/all");
  await tryPasscode(tab, "something else");
  await expect(tab.getByTestId("locked").getByRole("alert")).toHaveText("Wrong passcode");
  const beside = await unlock(tab, OLD);
  await expect(beside.item("Secret")).toBeVisible();
  await plan.page.bringToFront();
  const change = { "Current passcode": OLD, "New passcode": NEW, "Confirm passcode": NEW };
  await changePasscode(plan, /Change passcode/, change);
  await expect(plan.toast).toHaveText("Passcode changed");
  await tab.bringToFront();
  await expect((await unlock(tab, NEW)).item("Secret")).toBeVisible();
});

test("forgotten: the device is erased, says what is lost, and signs in again", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.signUp("petra", "plaintext");
  await plan.add("On the server");
  await expect(plan.pill).toHaveText("Synced");
  await changePasscode(plan, /with a passcode/, SET);
  await expect(plan.toast).toHaveText("encrypted on this device");
  await page.reload();
  const gate = page.getByTestId("locked");
  await gate.getByRole("button", { name: "Forgot passcode?" }).click();
  await expect(gate).toHaveText("haven’t been sent yet are lost");
  const erase = gate.getByRole("button", { name: "Erase items and sign in again" });
  await expect(erase).toBeDisabled();
  await gate.getByRole("checkbox").check();
  await erase.click();
  const again = await planOn(page);
  await expect(again.toast).toHaveText("erased");
  await expect(again.items).toHaveCount(0);
  await again.signIn("petra");
  await expect(again.item("On the server")).toBeVisible();
});

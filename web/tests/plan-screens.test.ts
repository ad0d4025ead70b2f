/** Tests every screen of Plan: light, dark, and on a phone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { bed, PASSWORD } from "./harness.js";
import { lookAt, LOOKS } from "./screen-checks.js";
import { expect } from "./plan/expect.js";
import { openPlan, typeWords, type PlanScreen } from "./plan/screen.js";

const here = bed();

const DAY_MS = 86_400_000;
const day = (away: number): string =>
  new Date(Date.now() + away * DAY_MS).toISOString().slice(0, 10);

const CSV = `title,note,due,list,done
Water the plants,,${day(0)},Home,
Call the plumber about the kitchen tap,The number is on the fridge. Before noon.,${day(-1)},Home,
"Buy oat milk, bread, tomatoes",,,Home,
Return library books,,${day(2)},Home,
Fix the bike’s back brake,,${day(5)},Home,
Plan Anna’s birthday,"Cake, candles, the park if it doesn’t rain",${day(12)},Home,
"Sort the photographs of last summer, keep the best twenty and print them",,,Home,
Pay the rent,,,Home,yes
Send the invoice,,${day(0)},Work,
Prepare Thursday’s review,Slides from last time are a good start,${day(1)},Work,
Book the train,,${day(3)},Trip to Lisbon,
Find a flat near the river,,,Trip to Lisbon,
The Left Hand of Darkness,,,Reading list,
`;

/** The steps from the list to each screen. */
const SCREENS: Readonly<Record<string, (plan: PlanScreen) => Promise<void>>> = {
  list: async (plan) => showPlace(plan, "Home"),
  today: async (plan) => showPlace(plan, "Today"),
  item: async (plan) => {
    await plan.item("Call the plumber").getByRole("button").click();
    await expect(plan.page.getByTestId("item-panel")).toBeVisible();
  },
  search: async ({ page }) => {
    const open = page.getByRole("button", { name: "Search", exact: true });
    if (await open.isVisible()) await open.click();
    await page.getByRole("searchbox").fill("the");
    await page.getByText("Return library books").waitFor({ state: "detached" });
    await page.getByText("Book the train").waitFor();
  },
  account: async (plan) => {
    await plan.openSync();
    await plan.page.getByTestId("sync").getByRole("button", { name: "Create account" }).click();
  },
  settings: async (plan) => settings(plan),
  passcode: async (plan) => {
    await settings(plan);
    await plan.page.getByRole("button", { name: /with a passcode/ }).click();
  },
  deleted: async (plan) => {
    await plan.item("Return library books").getByRole("button").click();
    const panel = plan.page.getByTestId("item-panel");
    await panel.getByRole("button", { name: "Delete" }).click();
    await plan.toast.getByRole("button", { name: "Dismiss" }).click();
    await settings(plan);
    await plan.page.getByRole("button", { name: "Recently deleted" }).click();
    await expect(plan.page.getByTestId("deleted-row")).toBeVisible();
  },
  keys: async (plan) => {
    await settings(plan);
    await plan.page.getByRole("button", { name: "Keyboard shortcuts" }).click();
  },
  import: async (plan) => {
    await settings(plan);
    await plan.page.getByTestId("settings").getByRole("button", { name: "Import a file" }).click();
    await chooseFile(plan.page);
  },
  "new-list": async ({ page }) => {
    await drawer(page);
    await page.getByRole("button", { name: "New list" }).click();
  },
};

/** The steps to screens that need an account. */
const SYNCED: typeof SCREENS = {
  sync: async (plan) => {
    await plan.openSync();
    await expect(plan.page.getByTestId("devices").getByRole("listitem")).toHaveCount(1);
  },
  history: async (plan) => {
    await plan.item("Water the plants").getByRole("button").click();
    await plan.page.getByRole("button", { name: "History" }).click();
    await expect(plan.page.getByTestId("history").getByRole("listitem")).toHaveCount(1);
  },
  "sign-out": async (plan) => {
    await plan.openSync();
    await plan.page.getByRole("button", { name: "Sign out" }).click();
    await plan.page.getByRole("radio", { name: /Remove from this device/ }).check();
  },
  phrase: async (plan) => {
    await settings(plan);
    await plan.page.getByRole("button", { name: "Recovery phrase" }).click();
    await expect(plan.page.getByTestId("words").getByRole("listitem")).toHaveCount(24);
  },
  password: async (plan) => openPassword(plan),
  "password-wrong": async (plan) => {
    await openPassword(plan);
    await changePassword(plan, "not the password");
    await expect(plan.page.getByText("The current password is wrong")).toBeVisible();
  },
};

for (const [look, options] of Object.entries(LOOKS)) {
  test(`every screen, ${look}: no serious finding`, async () => {
    const device = await here.device({ ...options, locale: "en-GB" });
    device.expectErrors(/Failed to load resource/);
    const plan = await openPlan(device);
    await lookAt(plan.page, `plan-empty-${look}`);
    await SCREENS["import"]?.(plan);
    await plan.page.getByRole("button", { name: "Import 13 items" }).click();
    await expect(plan.items).toHaveCount(12);
    await plan.toast.getByRole("button", { name: "Dismiss" }).click();
    await visit(plan, look, SCREENS);
    const phrase = await signUp(plan, look);
    await visit(plan, look, SYNCED);

    const other = await here.device(options);
    other.expectErrors(/Failed to load resource/);
    const second = await openPlan(other);
    await second.signIn(`${look}-user`, PASSWORD);
    await expect(second.page.getByTestId("enter-phrase")).toBeVisible();
    await lookAt(second.page, `plan-enter-phrase-${look}`);
    await second.enterPhrase(phrase ?? "");
    await expect(second.pill).toHaveText("Synced");
    await typeOver(plan, second, look);
    await lock(second, look, phrase ?? "");

    await plan.page.reload();
    await plan.page.getByTestId("app").waitFor();
    await openPassword(plan);
    await changePassword(plan, PASSWORD);
    await expect(plan.toast).toHaveText("Password changed");
    const isWhole = await plan.toast
      .locator(".toast-text")
      .evaluate(
        (text) => text.scrollWidth <= text.clientWidth && text.scrollHeight <= text.clientHeight,
      );
    assert.ok(isWhole, "the confirmation is not cut off");
    await expect(second.toast).toHaveText("This device was signed out");
    await showPlace(second, "Home");
    await lookAt(second.page, `plan-signed-out-${look}`);
    await second.openSync();
    await lookAt(second.page, `plan-signed-out-sync-${look}`);
  });
}

async function visit(plan: PlanScreen, look: string, screens: typeof SCREENS): Promise<void> {
  for (const [name, show] of Object.entries(screens)) {
    await plan.page.goto(new URL("/#/all", here.server.address).href);
    await plan.page.reload();
    await plan.page.getByTestId("app").waitFor();
    await showPlace(plan, "Home");
    await show(plan);
    await lookAt(plan.page, `plan-${name}-${look}`);
  }
}

async function signUp(plan: PlanScreen, look: string): Promise<string | undefined> {
  await plan.page.reload();
  await plan.page.getByTestId("app").waitFor();
  const phrase = await plan.signUp(`${look}-user`, "e2ee");
  await expect(plan.pill).toHaveText("Synced");
  return phrase;
}

/** Lets both devices change a note; the question is closed without an answer. */
async function typeOver(plan: PlanScreen, second: PlanScreen, look: string): Promise<void> {
  const title = "Call the plumber";
  for (const one of [plan, second]) {
    await one.page.goto(new URL("/#/all", here.server.address).href);
    await one.page.reload();
    await one.page.getByTestId("app").waitFor();
    await one.item(title).getByRole("button").click();
  }
  const note = (one: PlanScreen): Locator => one.page.getByTestId("item-panel").getByLabel("Note");
  await note(plan).fill("Rang twice, nobody there. Try again on Monday.");
  await note(second).fill("He comes on Thursday at nine.");
  await note(second).blur();
  await expect(plan.page.getByTestId("contest")).toHaveText("He comes on Thursday");
  await lookAt(plan.page, `plan-contest-${look}`);
  await plan.page.getByRole("button", { name: "Close item" }).click();
  await expect(plan.page.getByTestId("losses")).toHaveText("1 lost edit");
  await showPlace(plan, "Home");
  await plan.openSync();
  await plan.page.getByRole("button", { name: "Review" }).click();
  await expect(plan.page.getByTestId("conflict")).toHaveText(title);
  await lookAt(plan.page, `plan-conflicts-${look}`);
  await second.page.getByRole("button", { name: "Close item" }).click();
}

/** Sets a passcode and removes it again. */
async function lock(plan: PlanScreen, look: string, phrase: string): Promise<void> {
  const { page } = plan;
  await settings(plan);
  await page.getByRole("button", { name: /with a passcode/ }).click();
  await typeWords(page, phrase);
  await lookAt(page, `plan-words-check-${look}`);
  const dialog = page.getByTestId("passcode");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.getByLabel("Passcode", { exact: true }).fill("open sesame");
  await dialog.getByLabel("Confirm passcode").fill("open sesame");
  await dialog.getByRole("button", { name: "Set passcode" }).click();
  await expect(dialog).toBeGone();
  await page.reload();
  const gate = page.getByTestId("locked");
  await expect(gate).toBeVisible();
  await lookAt(page, `plan-locked-${look}`);
  await gate.getByRole("button", { name: "Forgot passcode?" }).click();
  await lookAt(page, `plan-erase-${look}`);
  await gate.getByRole("button", { name: "Back" }).click();
  await gate.getByLabel("Passcode").fill("open sesame");
  await gate.getByRole("button", { name: "Unlock", exact: true }).click();
  await page.getByTestId("app").waitFor();
}

async function openPassword(plan: PlanScreen): Promise<void> {
  await plan.openSync();
  await plan.page.getByRole("button", { name: "Change password" }).click();
}

async function changePassword({ page }: PlanScreen, current: string): Promise<void> {
  await page.getByLabel("Current password", { exact: true }).fill(current);
  await page.getByLabel("New password", { exact: true }).fill("another password");
  await page.getByRole("button", { name: "Change password" }).click();
}

async function drawer(page: Page): Promise<void> {
  const open = page.getByRole("button", { name: "Lists", exact: true });
  if (await open.isVisible()) await open.click();
}

async function showPlace(plan: PlanScreen, name: string): Promise<void> {
  await drawer(plan.page);
  await plan.goTo(name);
  await plan.items.first().waitFor();
}

async function settings(plan: PlanScreen): Promise<void> {
  await drawer(plan.page);
  await plan.openSettings();
}

async function chooseFile(page: Page): Promise<void> {
  const file = { name: "plan.csv", mimeType: "text/csv", buffer: Buffer.from(CSV) };
  await page.locator("input[type=file]").setInputFiles(file);
  await page.getByRole("button", { name: "Import 13 items" }).waitFor();
}

/**
 * Tests plaintext and encrypted accounts: what a new device shows and asks, and an account that is
 * encrypted later.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bed, PASSWORD } from "./harness.js";
import { expect } from "./plan/expect.js";
import {
  fillAccount,
  openPlan,
  planOn,
  REFUSED,
  writeDown,
  type PlanScreen,
} from "./plan/screen.js";

const here = bed();

/** Returns the number of messages that an account has on the server. */
async function messagesOf(plan: PlanScreen, login: string): Promise<number> {
  const device = JSON.stringify({ login, password: PASSWORD, name: "a look" });
  const headers = { "content-type": "application/json" };
  const at = here.server.address;
  const registered = await fetch(`${at}/v1/devices`, { method: "POST", headers, body: device });
  const { token } = (await registered.json()) as { token: string };
  const page = await fetch(`${at}/v1/sync/delta`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { fingerprint } = (await page.json()) as { fingerprint: { count: number } };
  assert.ok(plan.page.url().startsWith(at));
  return fingerprint.count;
}

test("an account in plain is encrypted later: the other device asks, and follows", async () => {
  const [one, two] = [await here.device(), await here.device()];
  two.expectErrors(REFUSED);
  const first = await openPlan(one);
  await first.signUp("erna", "plaintext");
  await first.add("Made in plain");
  await expect(first.pill).toHaveText("Synced");
  const second = await openPlan(two);
  await second.signIn("erna");
  await expect(second.item("Made in plain")).toBeVisible();

  await first.openSettings();
  await first.page.getByRole("button", { name: "Turn on end-to-end encryption" }).click();
  const phrase = await writeDown(first.page);
  await first.add("Made after it");
  await expect(first.pill).toHaveText("Synced");

  await second.add("Of the other one");
  const ask = second.page.getByTestId("enter-phrase");
  await expect(ask).toBeVisible();
  await second.enterPhrase(phrase);
  await expect(ask).toBeGone();
  for (const plan of [first, second]) {
    for (const title of ["Made in plain", "Made after it", "Of the other one"]) {
      await expect(plan.item(title)).toBeVisible();
    }
    await expect(plan.pill).toHaveText("Synced");
  }
});

test("a new device that has a phrase says so when it signs in", async () => {
  const first = await openPlan(await here.device());
  const phrase = (await first.signUp("emil", "e2ee")) ?? "";
  await first.add("Secret");
  await expect(first.pill).toHaveText("Synced");

  const second = await openPlan(await here.device());
  await second.add("Mine");
  await second.signIn("emil", PASSWORD, phrase);
  await expect(second.item("Secret")).toBeVisible();
  await expect(first.item("Mine")).toBeVisible();
});

test("with a phrase nothing is sent to an account that is in plain, or empty", async () => {
  const phrase = `${"abandon ".repeat(23)}art`;
  const first = await openPlan(await here.device());
  await first.signUp("plaintext", "plaintext");
  await expect(first.pill).toHaveText("Synced");
  const before = await messagesOf(first, "plaintext");
  await here.server.account("empty");
  for (const [login, label] of [
    ["plaintext", "Wrong account?"],
    ["empty", "Can’t check phrase yet"],
  ] as const) {
    const device = await here.device();
    device.expectErrors(REFUSED);
    const plan = await openPlan(device);
    await plan.add("Nobody else's");
    await plan.signIn(login, PASSWORD, phrase);
    await expect(plan.pill).toHaveText(label);
    assert.equal(await messagesOf(plan, login), login === "plaintext" ? before : 0);
  }
});

test("an account without items: nothing is sent before the user has chosen", async () => {
  for (const [login, choice] of [
    ["new-e2ee", "Start with end-to-end encryption"],
    ["new-plaintext", "Start without end-to-end encryption"],
  ] as const) {
    await here.server.account(login);
    const device = await here.device();
    device.expectErrors(REFUSED);
    const plan = await openPlan(device);
    await plan.add("My first");
    await plan.signIn(login);
    const ask = plan.page.getByTestId("new-account");
    await expect(ask).toBeVisible();
    assert.equal(await messagesOf(plan, login), 0);
    await ask.getByRole("button", { name: choice }).click();
    if (login === "new-e2ee") await writeDown(plan.page);
    await expect(plan.pill).toHaveText("Synced");
    assert.ok((await messagesOf(plan, login)) > 0);
  }
});

test("a new phrase is shown until three of its words were typed back", async () => {
  const device = await here.device();
  const plan = await openPlan(device);
  const { page } = plan;
  await fillAccount(plan, "Create account", "edda", PASSWORD);
  await page.locator("form").getByRole("button", { name: "Create account" }).click();
  const dialog = page.getByTestId("phrase");
  await expect(dialog.getByTestId("words").getByRole("listitem")).toHaveCount(24);
  await page.reload();
  await expect(dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await dialog.getByRole("button", { name: "I’ve written it down" }).click();
  const check = page.getByTestId("words-check");
  for (const input of await check.locator("input").all()) await input.fill("wrong");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await expect(check.getByRole("alert")).toHaveText(/Word \d+ is wrong/);
  await check.getByRole("button", { name: "Show recovery phrase" }).click();
  const phrase = await writeDown(page);
  await page.reload();
  const again = await planOn(page);
  await expect(again.pill).toHaveText("Synced");
  await expect(dialog).toHaveCount(0);

  // The form in which the list is copied.
  const second = await openPlan(await here.device());
  const numbered = phrase.split(" ").map((word, i) => `${i + 1}. ${word.toUpperCase()}`);
  await second.signIn("edda", PASSWORD, numbered.join("\n"));
  await expect(second.pill).toHaveText("Synced");
});

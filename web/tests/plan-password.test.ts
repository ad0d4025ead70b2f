/**
 * Tests a change of password in Plan: its effect on the other devices, and the messages when it
 * fails.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { bed, PASSWORD } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import { openPlan, planOn, REFUSED, signedUp, type PlanScreen } from "./plan/screen.js";

const here = bed();
const NEW_PASSWORD = "another password";

interface PasswordForm {
  readonly form: Locator;
  readonly current: Locator;
  readonly next: Locator;
  readonly others: Locator;
  readonly problem: Locator;
  submit(): Promise<void>;
}

/** Opens the form from the settings. */
async function openPasswordForm(plan: PlanScreen): Promise<PasswordForm> {
  await plan.openSettings();
  await plan.page.getByRole("button", { name: "Change password" }).click();
  const form = plan.page.getByTestId("password");
  return {
    form,
    current: form.getByLabel("Current password", { exact: true }),
    next: form.getByLabel("New password", { exact: true }),
    others: form.getByRole("checkbox", { name: "Sign out all other devices" }),
    problem: form.getByRole("alert"),
    submit: () => form.getByRole("button", { name: "Change password" }).click(),
  };
}

/** Signs in on another device of an account. */
async function signedIn(login: string, password: string): Promise<PlanScreen> {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.signIn(login, password);
  return plan;
}

/** Asserts that the form still has its values. */
async function holds(form: PasswordForm, current: string, hasOthers: boolean): Promise<void> {
  assert.equal(await form.current.inputValue(), current);
  assert.equal(await form.next.inputValue(), NEW_PASSWORD);
  assert.equal(await form.others.isChecked(), hasOthers);
}

/**
 * Starts 20 guessers, each with its own wrong password: more than can be served while another
 * login waits. Returns a function that stops them.
 */
function guess(login: string): () => Promise<void> {
  const stopped = new AbortController();
  const keepGuessing = async (number: number): Promise<void> => {
    const init: RequestInit = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ login, password: `not the password ${number}`, name: "" }),
      signal: stopped.signal,
    };
    while (!stopped.signal.aborted) {
      const answer = await fetch(`${here.server.address}/v1/devices`, init);
      await answer.arrayBuffer();
    }
  };
  const guessing = Array.from({ length: 20 }, (_, number) => keepGuessing(number));
  return async () => {
    stopped.abort();
    await Promise.allSettled(guessing);
  };
}

async function isFocused(locator: Locator): Promise<void> {
  const focused = (): Promise<boolean> =>
    locator.evaluate((element) => element === document.activeElement);
  await eventually(async () => assert.ok(await focused(), String(locator)));
}

test("the other devices are signed out; they say so, and lose nothing", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const first = await openPlan(device);
  const phrase = await first.signUp("pia", "e2ee");
  await first.add("Of pia");
  await expect(first.pill).toHaveText("Synced");
  const second = await signedIn("pia", PASSWORD);
  await second.enterPhrase(phrase ?? "");
  await expect(second.item("Of pia")).toBeVisible();
  await expect(second.pill).toHaveText("Synced");

  // Only the keyboard is used.
  const form = await openPasswordForm(first);
  const { keyboard } = first.page;
  await isFocused(form.current);
  await keyboard.type(PASSWORD);
  await keyboard.press("Tab");
  await isFocused(form.next);
  await keyboard.type(NEW_PASSWORD);
  await keyboard.press("Tab");
  await isFocused(form.others);
  await holds(form, PASSWORD, true);
  await keyboard.press("Tab");
  await keyboard.press("Tab");
  await keyboard.press("Enter");
  await expect(form.form).toBeGone();
  await expect(first.toast).toHaveText("Password changed, all other devices signed out");
  await first.add("Still in sync");
  await expect(first.pill).toHaveText("Synced");

  await expect(second.pill).toHaveText("Signed out");
  await expect(second.toast).toHaveText("This device was signed out");
  await second.add("Made after the end");
  await second.page.reload();
  const again = await planOn(second.page);
  const tab = await again.page.context().newPage();
  await tab.goto(again.page.url());
  const beside = await planOn(tab);
  await expect(beside.toast).toHaveText("This device was signed out");
  await expect(again.item("Made after the end")).toBeVisible();
  await again.toast.getByRole("button", { name: "Sign in" }).click();
  const account = again.page.getByTestId("account");
  assert.equal(await account.getByLabel("Name", { exact: true }).inputValue(), "pia");
  const signIn = account.locator("form").getByRole("button", { name: "Sign in" });
  await account.getByLabel("Password").fill(PASSWORD);
  await signIn.click();
  await expect(account.getByRole("alert")).toHaveText("Wrong name or password");
  await account.getByLabel("Password").fill(NEW_PASSWORD);
  await signIn.click();
  await expect(account).toBeGone();
  await expect(again.toast).toHaveText("Signed in as pia");
  await expect(again.pill).toHaveText("Synced");
  await expect(beside.toast.getByRole("button")).toHaveCount(0);
  await expect(again.item("Still in sync")).toBeVisible();
  await expect(first.item("Made after the end")).toBeVisible();
  // The phrase is still on the device, so Plan does not ask for it again.
  await expect(again.page.getByTestId("enter-phrase")).toHaveCount(0);
});

test("if that is wanted, the other devices go on; the next sign-in needs the new one", async () => {
  const first = await signedUp(await here.device(), "paul");
  const second = await signedIn("paul", PASSWORD);
  await expect(second.item("Of paul")).toBeVisible();
  const form = await openPasswordForm(first);
  await form.current.fill(PASSWORD);
  await form.next.fill(NEW_PASSWORD);
  await form.others.uncheck();
  await form.submit();
  await expect(form.form).toBeGone();
  await expect(first.toast).toHaveText(/^Password changed$/);
  await second.add("Still in sync");
  await expect(first.item("Still in sync")).toBeVisible();

  const third = await signedIn("paul", PASSWORD);
  const refused = third.page.getByTestId("account").getByRole("alert");
  await expect(refused).toHaveText("Wrong name or password");
  await third.close();
  await third.signIn("paul", NEW_PASSWORD);
  await expect(third.item("Still in sync")).toBeVisible();
});

test("a wrong password, and a server that is away, are said; what was typed stays", async () => {
  const device = await here.device();
  const plan = await signedUp(device, "petra");
  const form = await openPasswordForm(plan);
  await form.current.fill("not this one");
  await form.next.fill(NEW_PASSWORD);
  await form.others.uncheck();
  await form.submit();
  await expect(form.problem).toHaveText(/^The current password is wrong\.$/);
  await holds(form, "not this one", false);
  await isFocused(form.current);

  await form.current.fill(PASSWORD);
  await device.context.setOffline(true);
  await form.submit();
  await expect(form.problem).toHaveText("Can’t reach the server");
  await holds(form, PASSWORD, false);
  await device.context.setOffline(false);
  await form.submit();
  await expect(form.form).toBeGone();
  await expect(plan.toast).toHaveText("Password changed");
});

test("too many attempts are said to be that, and later it goes on", async () => {
  const plan = await signedUp(await here.device(), "paola");
  const form = await openPasswordForm(plan);
  await form.current.fill("not this one");
  await form.next.fill(NEW_PASSWORD);
  const stopGuessing = guess("paola");
  await eventually(async () => {
    await form.submit();
    await expect(form.problem).toHaveText("Too many attempts", 15_000);
  }, 60_000);
  await holds(form, "not this one", true);
  await stopGuessing();
  await form.current.fill(PASSWORD);
  await eventually(async () => {
    if (await form.form.isVisible()) await form.submit();
    await expect(form.form).toBeGone(10_000);
  });
  await expect(plan.toast).toHaveText("Password changed");
});

test("an answer that is lost: the next attempt says that it may have been changed", async () => {
  const device = await here.device();
  const plan = await signedUp(device, "pepe");
  const form = await openPasswordForm(plan);
  await form.current.fill(PASSWORD);
  await form.next.fill(NEW_PASSWORD);
  await device.context.route("**/v1/accounts/password", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await form.submit();
  await expect(form.problem).toHaveText("Can’t reach the server");
  await device.context.unroute("**/v1/accounts/password");
  await form.submit();
  await expect(form.problem).toHaveText("If your last attempt did go through");
  await holds(form, PASSWORD, true);
  await form.current.fill(NEW_PASSWORD);
  await form.submit();
  await expect(form.form).toBeGone();
});

test("password managers find the account's name, the old password, and the new one", async () => {
  const plan = await signedUp(await here.device(), "pola");
  const { form } = await openPasswordForm(plan);
  const fields = form.locator("form input:not([type=checkbox])");
  const told = await fields.evaluateAll((inputs) =>
    inputs.map((input) => [input.getAttribute("autocomplete"), (input as HTMLInputElement).value]),
  );
  assert.deepEqual(told, [
    ["username", "pola"],
    ["current-password", ""],
    ["new-password", ""],
  ]);
});

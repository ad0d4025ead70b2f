/**
 * Plain or encrypted: what a new device says and asks, and an account that is encrypted later.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bed, PASSWORD } from "./harness.js";
import { expect } from "./plan/expect.js";
import { openPlan, REFUSED, type Plan } from "./plan/screen.js";

const here = bed();

/** How many messages an account has on the server. */
async function messagesOf(plan: Plan, login: string): Promise<number> {
  const device = JSON.stringify({ login, password: PASSWORD, name: "a look" });
  const headers = { "content-type": "application/json" };
  const at = here.server.address;
  const registered = await fetch(`${at}/v1/clients`, { method: "POST", headers, body: device });
  const { token } = (await registered.json()) as { token: string };
  const page = await fetch(`${at}/v1/sync/delta`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { fingerprint } = (await page.json()) as { fingerprint: { count: number } };
  assert.ok(plan.page.url().startsWith(at));
  return fingerprint.count;
}

async function readPhrase(plan: Plan): Promise<string> {
  const list = plan.page.getByTestId("words").getByRole("listitem");
  await expect(list).toHaveCount(24);
  const words = (await list.allTextContents()).join(" ");
  await plan.page.getByLabel("I have written it down").check();
  await plan.page.getByRole("button", { name: "Go on" }).click();
  return words;
}

test("an account in plain is encrypted later: the other device asks, and follows", async () => {
  const [one, two] = [await here.device(), await here.device()];
  two.expectErrors(REFUSED);
  const first = await openPlan(one);
  await first.signUp("erna", "plain");
  await first.add("Made in plain");
  await expect(first.pill).toHaveText("In step");
  const second = await openPlan(two);
  await second.signIn("erna");
  await expect(second.item("Made in plain")).toBeVisible();

  await first.openSettings();
  await first.page.getByRole("button", { name: "Encrypt your items from end to end" }).click();
  const phrase = await readPhrase(first);
  await first.add("Made after it");
  await expect(first.pill).toHaveText("In step");

  await second.add("Of the other one");
  const ask = second.page.getByTestId("enter-phrase");
  await expect(ask).toBeVisible();
  await second.enterPhrase(phrase);
  await expect(ask).toBeGone();
  for (const plan of [first, second]) {
    for (const title of ["Made in plain", "Made after it", "Of the other one"]) {
      await expect(plan.item(title)).toBeVisible();
    }
    await expect(plan.pill).toHaveText("In step");
  }
});

test("a new device that has a phrase says so when it signs in", async () => {
  const first = await openPlan(await here.device());
  const phrase = (await first.signUp("emil", "sealed")) ?? "";
  await first.add("Secret");
  await expect(first.pill).toHaveText("In step");

  const second = await openPlan(await here.device());
  await second.add("Mine");
  await second.signIn("emil", PASSWORD, phrase);
  await expect(second.item("Secret")).toBeVisible();
  await expect(first.item("Mine")).toBeVisible();
});

test("with a phrase nothing is sent to an account that is in plain, or empty", async () => {
  const phrase = `${"abandon ".repeat(23)}art`;
  const first = await openPlan(await here.device());
  await first.signUp("plain", "plain");
  await expect(first.pill).toHaveText("In step");
  const before = await messagesOf(first, "plain");
  await here.server.account("empty");
  for (const [login, label] of [
    ["plain", "Not your account?"],
    ["empty", "Nothing opens yet"],
  ] as const) {
    const device = await here.device();
    device.expectErrors(REFUSED);
    const plan = await openPlan(device);
    await plan.add("Nobody else's");
    await plan.signIn(login, PASSWORD, phrase);
    await expect(plan.pill).toHaveText(label);
    assert.equal(await messagesOf(plan, login), login === "plain" ? before : 0);
  }
});

test("an account without items: nothing is sent before the user has chosen", async () => {
  for (const [login, choice] of [
    ["new-sealed", "It is new: encrypt from end to end"],
    ["new-plain", "It is new: without encryption"],
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
    if (login === "new-sealed") await readPhrase(plan);
    await expect(plan.pill).toHaveText("In step");
    assert.ok((await messagesOf(plan, login)) > 0);
  }
});

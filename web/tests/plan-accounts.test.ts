/**
 * Tests several people on one browser: no items get into another person's account.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bed, PASSWORD } from "./harness.js";
import { expect } from "./plan/expect.js";
import {
  fillAccount,
  openPlan,
  planOn,
  prependToWorker,
  REFUSED,
  typeWords,
  WITHOUT_FILES,
  type PlanScreen,
} from "./plan/screen.js";

const here = bed();

/** Returns the account's items, as an otherwise empty device sees them. */
async function itemsOnServer(login: string, count: number): Promise<string[]> {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.signIn(login);
  await expect(plan.items).toHaveCount(count);
  await expect(plan.pill).toHaveText("Synced");
  return (await plan.titles()).sort();
}

async function signOut(
  plan: PlanScreen,
  choice: "keep" | "remove",
  phrase?: string,
): Promise<void> {
  const { page } = plan;
  await plan.openSync();
  await page.getByRole("button", { name: "Sign out" }).click();
  const dialog = page.getByTestId("sign-out");
  const label = choice === "keep" ? /Keep on this device/ : /Remove from this device/;
  await dialog.getByRole("radio", { name: label }).check();
  const button = choice === "keep" ? "Sign out" : "Sign out and remove";
  await dialog.getByRole("button", { name: button, exact: true }).click();
  if (phrase !== undefined) {
    await typeWords(page, phrase);
    await dialog.getByRole("button", { name: button, exact: true }).click();
  }
  await expect(dialog).toBeGone();
}

test("the next person on the browser gets nothing of the first, phrase and all", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  const phraseOne = await plan.signUp("one", "e2ee");
  await plan.add("Secret of one");
  await expect(plan.pill).toHaveText("Synced");
  await signOut(plan, "keep");
  await expect(plan.item("Secret of one")).toBeVisible();
  await device.context.setOffline(true);
  await plan.add("Not sent yet");
  await device.context.setOffline(false);

  const phraseTwo = await plan.signUp("two", "e2ee");
  assert.notEqual(phraseTwo, phraseOne);
  const second = await planOn(page);
  await expect(second.items).toHaveCount(0);
  await second.add("Of two");
  await expect(second.pill).toHaveText("Synced");
  const elsewhere = await here.device();
  elsewhere.expectErrors(REFUSED);
  const other = await openPlan(elsewhere);
  await other.signIn("two", PASSWORD, phraseTwo);
  await expect(other.item("Of two")).toBeVisible();
  await expect(other.pill).toHaveText("Synced");
  assert.deepEqual(await other.titles(), ["Of two"]);

  // The first user finds the items that were kept, and the unsent ones are sent; the phrase is
  // known.
  await signOut(second, "remove", phraseTwo);
  await expect((await planOn(page)).items).toHaveCount(0);
  await second.signIn("one");
  await expect(second.item("Secret of one")).toBeVisible();
  await expect(second.item("Not sent yet")).toBeVisible();
  await expect(second.pill).toHaveText("Synced");
});

test("without a secure context, the next person gets nothing of the first either", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const withoutDigests = "delete Crypto.prototype.subtle;";
  await device.context.addInitScript(withoutDigests);
  await prependToWorker(device, `${withoutDigests}${WITHOUT_FILES}`);
  const plan = await openPlan(device);
  await expect(plan.pill).toHaveText("Not saved permanently");
  await plan.signUp("first", "plaintext");
  await plan.add("Of the first");
  assert.deepEqual(await itemsOnServer("first", 1), ["Of the first"]);
  await signOut(plan, "keep");
  await plan.signUp("second", "plaintext");
  const second = await planOn(plan.page);
  await expect(second.items).toHaveCount(0);
  await second.add("Of the second");
  assert.deepEqual(await itemsOnServer("second", 1), ["Of the second"]);
});

test("removed from the device: no file of the account is left", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.signUp("rosa", "plaintext");
  await plan.add("Of rosa");
  await expect(plan.pill).toHaveText("Synced");
  const tab = await device.open("/#/all");
  await expect((await planOn(tab)).item("Of rosa")).toBeVisible();
  await page.bringToFront();
  await signOut(plan, "remove");
  await expect(plan.toast).toHaveText("removed from this device");
  await expect(plan.pill).toHaveText("Only on this device");
  await expect(plan.items).toHaveCount(0);
  await expect((await planOn(tab)).items).toHaveCount(0);
  const pools = await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("warren");
    const names: string[] = [];
    for await (const name of folder.keys()) names.push(name);
    return names;
  });
  assert.deepEqual(pools, ["plan"]);
  await plan.signIn("rosa");
  await expect(plan.item("Of rosa")).toBeVisible();
});

test("items without an account come along if that is wanted, and stay apart if not", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.add("Nobody's");
  await fillAccount(plan, "Create account", "nora", PASSWORD);
  const form = page.getByTestId("account");
  await form.getByRole("checkbox", { name: /End-to-end encryption/ }).uncheck();
  const along = form.getByRole("checkbox", { name: /Add the items on this device/ });
  await along.uncheck();
  await form.locator("form").getByRole("button", { name: "Create account" }).click();
  await expect(form).toBeGone();
  await plan.add("Of nora");
  await expect(plan.pill).toHaveText("Synced");
  assert.deepEqual(await itemsOnServer("nora", 1), ["Of nora"]);
  await signOut(plan, "remove");
  await expect(plan.item("Nobody's")).toBeVisible();

  await here.server.account("nils");
  await plan.signIn("nils");
  const begin = page.getByTestId("new-account");
  await begin.getByRole("button", { name: "Start without end-to-end encryption" }).click();
  await expect(plan.item("Nobody's")).toBeVisible();
  await expect(plan.pill).toHaveText("Synced");
  assert.deepEqual(await itemsOnServer("nils", 1), ["Nobody's"]);
  await signOut(plan, "remove");
  await expect(plan.pill).toHaveText("Only on this device");
  await expect(plan.items).toHaveCount(0);
});

test("a wrong password opens nothing of what an account has kept here", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.signUp("ines", "plaintext");
  await plan.add("Of ines");
  await expect(plan.pill).toHaveText("Synced");
  await signOut(plan, "keep");
  await plan.signUp("ivan", "plaintext");
  await expect(plan.items).toHaveCount(0);
  await signOut(plan, "remove");
  await plan.signIn("ines", "a wrong password");
  const account = plan.page.getByTestId("account");
  await expect(account.getByRole("alert")).toHaveText("Wrong name or password");
  await plan.page.reload();
  await expect((await planOn(plan.page)).items).toHaveCount(0);
});

test("items with a passcode: somebody else goes round them, their owner comes back", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.signUp("olga", "plaintext");
  await plan.add("Of olga");
  await expect(plan.pill).toHaveText("Synced");
  await plan.openSettings();
  await page.getByRole("button", { name: /with a passcode/ }).click();
  const passcode = page.getByTestId("passcode");
  await passcode.getByLabel("Passcode", { exact: true }).fill("open sesame");
  await passcode.getByLabel("Confirm passcode").fill("open sesame");
  await passcode.getByRole("button", { name: "Set passcode" }).click();
  await expect(passcode).toBeGone();
  await signOut(plan, "keep");
  await page.reload();
  const gate = page.getByTestId("locked");
  await gate.getByRole("button", { name: "Use another account" }).click();
  await expect((await planOn(page)).items).toHaveCount(0);

  await plan.signIn("olga");
  const account = page.getByTestId("account");
  await expect(account.getByRole("alert")).toHaveText("locked with a passcode");
  await account.getByRole("button", { name: "Unlock with passcode" }).click();
  await gate.getByLabel("Passcode").fill("open sesame");
  await gate.getByRole("button", { name: "Unlock", exact: true }).click();
  await expect((await planOn(page)).item("Of olga")).toBeVisible();
  await expect(plan.pill).toHaveText("Signed out");
  await plan.signIn("olga");
  await expect(plan.pill).toHaveText("Synced");
});

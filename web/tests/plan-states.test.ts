/**
 * Tests Plan in failure states: each is on the screen, says what to do, and loses nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bed, PASSWORD } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import {
  openPlan,
  planOn,
  prependToWorker,
  REFUSED,
  signedUp,
  WITHOUT_FILES,
} from "./plan/screen.js";

const here = bed();

test("a wrong password, and a name that is taken, are said in the form", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await here.server.account("berta");
  await plan.signIn("berta", "not the password");
  const account = plan.page.getByTestId("account");
  await expect(account.getByRole("alert")).toHaveText("Wrong name or password");
  await account.getByRole("tab", { name: "New account" }).click();
  await account.getByLabel("Password").fill(PASSWORD);
  await account.getByRole("button", { name: "Create account" }).click();
  await expect(account.getByRole("alert")).toHaveText("This name is taken");
  await account.getByRole("tab", { name: "Sign in" }).click();
  await account.locator("form").getByRole("button", { name: "Sign in" }).click();
  await expect(account).toBeGone();
  const begin = plan.page.getByTestId("new-account");
  await begin.getByRole("button", { name: "Start without end-to-end encryption" }).click();
  await expect(begin).toBeGone();
  await plan.add("In plain, as the account is");
  await expect(plan.pill).toHaveText("Synced");
  await plan.openSettings();
  await expect(plan.page.getByRole("button", { name: "Recovery phrase" })).toHaveCount(0);
});

test("a revoked device says so, and sends its changes after signing in again", async () => {
  const first = await signedUp(await here.device(), "rita");
  const device = await here.device({ userAgent: "Lost Firefox/1 Android" });
  device.expectErrors(REFUSED);
  const second = await openPlan(device);
  await second.signIn("rita");
  await expect(second.item("Of rita")).toBeVisible();

  await first.openSync();
  const row = first.page.getByTestId("devices").getByRole("listitem");
  const lost = row.filter({ hasText: "Firefox on Android" });
  await lost.getByRole("button", { name: "Remove" }).click();
  await lost.getByRole("button", { name: "Confirm removal" }).click();
  await expect(row).toHaveCount(1);
  await first.close();

  await expect(second.toast).toHaveText("This device was signed out");
  await second.add("Made after the end");
  await expect(second.pill).toHaveText("Signed out");
  await second.openSync();
  await expect(second.page.getByTestId("sync")).toHaveText(/was signed out.*will sync later/);
  await second.close();
  await second.signIn("rita");
  await expect(second.pill).toHaveText("Synced");
  await expect(first.item("Made after the end")).toBeVisible();
});

test("the server goes away and comes back: what was done meanwhile is sent by itself", async () => {
  const plan = await signedUp(await here.device(), "sven");
  await here.server.kill();
  await plan.add("While it was away");
  await expect(plan.pill).toHaveText(/Offline · \d+ to sync/);
  await plan.openSync();
  await expect(plan.page.getByTestId("sync")).toHaveText("You can keep working");
  await plan.close();
  await here.server.start();
  await expect(plan.pill).toHaveText("Synced");
  const device = await here.device();
  const other = await openPlan(device);
  await other.signIn("sven");
  await expect(other.item("While it was away")).toBeVisible();
});

test("signed out: the items stay, and sync again after the next sign-in", async () => {
  const plan = await signedUp(await here.device(), "sara");
  await plan.openSync();
  await plan.page.getByRole("button", { name: "Sign out" }).click();
  const dialog = plan.page.getByTestId("sign-out");
  await dialog.getByRole("button", { name: "Sign out", exact: true }).click();
  await expect(plan.pill).toHaveText("Signed out");
  await plan.add("Made while signed out");
  await plan.signIn("sara");
  await expect(plan.pill).toHaveText("Synced");
  assert.deepEqual((await plan.titles()).sort(), ["Made while signed out", "Of sara"]);
});

test("without lasting storage it works, and warns", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  await prependToWorker(device, WITHOUT_FILES);
  const plan = await openPlan(device);
  await expect(plan.pill).toHaveText("Not saved permanently");
  await plan.add("For now");
  await plan.openSync();
  await expect(plan.page.getByTestId("sync")).toHaveText("lost when you close");
});

test("a full device: an import is refused as a whole, and later it goes on", async () => {
  const device = await here.device();
  const plan = await openPlan(device);
  await plan.add("There before");
  const cdp = await device.context.newCDPSession(plan.page);
  const origin = new URL(here.server.address).origin;
  await cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1_000_000 });
  const rows = Array.from({ length: 4_000 }, (_, i) => `Item ${i},${"a long note ".repeat(40)}`);
  const buffer = Buffer.from(`title,note\n${rows.join("\n")}`);
  await plan.openSettings();
  const settings = plan.page.getByTestId("settings");
  await settings.getByRole("button", { name: "Import a file" }).click();
  const file = { name: "plan.csv", mimeType: "text/csv", buffer };
  await plan.page.locator("input[type=file]").setInputFiles(file);
  await plan.page.getByRole("button", { name: "Import 4,000 items" }).click();
  await expect(plan.page.getByTestId("import")).toHaveText("Storage is full");
  await plan.close();
  await cdp.send("Storage.overrideQuotaForOrigin", { origin });
  await plan.add("There after");
  await eventually(async () => {
    assert.deepEqual((await plan.titles()).sort(), ["There after", "There before"]);
  });
});

test("a worker that dies is replaced, and nobody sees it", async () => {
  const plan = await openPlan(await here.device());
  await plan.add("Before");
  const [worker] = plan.page.workers();
  await worker?.evaluate(() => self.close());
  await plan.add("After");
  await plan.page.reload();
  await eventually(async () => {
    assert.deepEqual((await plan.titles()).sort(), ["After", "Before"]);
  });
});

test("loaded once, it starts without a network", async () => {
  const device = await here.device();
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.add("Kept");
  await plan.page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await eventually(async () => {
    const files = await plan.page.evaluate(async () => {
      const names = await caches.keys();
      const all = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return all.flat().map(({ url }) => new URL(url).pathname);
    });
    assert.ok(files.includes("/") && files.some((path) => path.endsWith(".wasm")));
    assert.ok(!files.some((path) => path.startsWith("/v1")));
  });
  await device.context.setOffline(true);
  await plan.page.reload();
  const again = await planOn(plan.page);
  await expect(again.item("Kept")).toBeVisible();
  await again.add("Made offline");
  await expect(again.pill).toHaveText("Only on this device");
});

/** Tests the operator's page on a server in use. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { ADMIN_TOKEN, bed, PASSWORD, type BrowserDevice } from "./harness.js";
import { lookAt, LOOKS } from "./screen-checks.js";

const here = bed({ serve: ["--lmtp", "127.0.0.1:0"] });

const DEVICE_NAME = "Ada's secret telephone";
const CONTENT = "what Ada wrote down";

/** Registers a device of a new account, and returns its token. */
async function register(login: string): Promise<string> {
  await here.server.account(login);
  const answer = await post("/v1/devices", { login, password: PASSWORD, name: DEVICE_NAME });
  return ((await answer.json()) as { readonly token: string }).token;
}

function post(path: string, body: object, token?: string): Promise<Response> {
  const headers = new Headers({ "content-type": "application/json" });
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  return fetch(here.server.address + path, { method: "POST", headers, body: JSON.stringify(body) });
}

let pushed = 0;

/** Pushes this many messages, no two alike. */
async function push(token: string, messages: number): Promise<void> {
  const list = Array.from({ length: messages }, () => {
    pushed += 1;
    const time = new Date(Date.UTC(2026, 0, 1) + pushed).toISOString();
    const content = Buffer.from(`${CONTENT} ${pushed}`).toString("base64");
    return { timestamp: `${time}-0000-00000000000000ab`, content };
  });
  const answer = await post("/v1/sync/delta", { messages: list }, token);
  assert.equal(answer.status, 200, await answer.text());
}

/** Pushes without a pause while `work` runs. */
async function pushingWhile(token: string, work: () => Promise<void>): Promise<void> {
  let isOver = false;
  const keepPushing = async (): Promise<void> => {
    while (!isOver) await push(token, 5);
  };
  const working = work().finally(() => {
    isOver = true;
  });
  await Promise.all([working, keepPushing()]);
}

async function signIn(device: BrowserDevice, token = ADMIN_TOKEN): Promise<Page> {
  const page = await device.open("/admin");
  await page.getByLabel("Admin token").fill(token);
  await page.keyboard.press("Enter");
  return page;
}

async function signedIn(device: BrowserDevice): Promise<Page> {
  const page = await signIn(device);
  await page.getByRole("table").waitFor();
  return page;
}

const tile = (page: Page, name: string) =>
  page.locator(".tile", { hasText: name }).locator(".value");

/** Returns the present value of a chart: the first number of its sentence. */
async function reading(page: Page, title: string): Promise<number> {
  const chart = page.getByRole("img", { name: new RegExp(`^${title}:`) });
  const said = (await chart.getAttribute("aria-label")) ?? "";
  return Number(/ ([\d.,]+)[^,]* now/.exec(said)?.[1]?.replaceAll(",", "") ?? 0);
}

/** Waits as long as the harness does until `holds` returns true. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const limit = AbortSignal.timeout(30_000);
  while (!(await holds())) limit.throwIfAborted();
}

async function cells(page: Page, login: string): Promise<readonly string[]> {
  const row = page.getByRole("row").filter({ hasText: login });
  return row.getByRole("cell").allInnerTexts();
}

const logins = (page: Page) => page.locator("th[scope=row]").allInnerTexts();

test("a wrong token is refused and not kept", async () => {
  const device = await here.device();
  device.expectErrors(/401/);
  const page = await signIn(device, "a guess");
  await page.getByRole("alert").filter({ hasText: "Wrong admin token" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.equal(await page.getByRole("table").count(), 0);
});

test("where the server has no token, the page says how to get one", async () => {
  const device = await here.device();
  await device.context.route("**/v1/admin", (route) => route.fulfill({ json: { enabled: false } }));
  const page = await device.open("/admin");
  await page.getByRole("heading", { name: "Admin page disabled" }).waitFor();
  await page.getByText("--admin-token-file").waitFor();
});

test("the token is this tab's alone, and signing out forgets it", async () => {
  const device = await here.device();
  const page = await signedIn(device);
  await page.reload();
  await page.getByRole("table").waitFor();
  const other = await device.open("/admin");
  await other.getByLabel("Admin token").waitFor();
  const kept = () => page.evaluate(() => [localStorage.length, sessionStorage.length]);
  assert.deepEqual(await kept(), [0, 1]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Admin token").waitFor();
  assert.deepEqual(await kept(), [0, 0]);
});

test("the rates move while devices push", async () => {
  const token = await register("mover");
  const page = await signedIn(await here.device());
  await pushingWhile(token, async () => {
    for (const title of ["Transactions", "Syncs", "Messages stored", "Sync duration"]) {
      await until(async () => (await reading(page, title)) > 0);
    }
  });
  await until(async () => (await reading(page, "Messages stored")) === 0);
});

test("accounts are searched, put in order and turned over, by keyboard too", async () => {
  for (let number = 0; number < 25; number += 1) {
    await here.server.account(`list-${String(number).padStart(2, "0")}`);
  }
  const page = await signedIn(await here.device());
  await page.getByLabel("Search by login").fill("LIST-");
  await page.getByText("1–20 of 25").waitFor();
  assert.deepEqual((await logins(page)).slice(0, 2), ["list-00", "list-01"]);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("21–25 of 25").waitFor();
  assert.deepEqual((await logins(page)).at(-1), "list-24");
  await page.getByRole("button", { name: "Login" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("1–20 of 25").waitFor();
  await until(async () => (await logins(page))[0] === "list-24");
  const head = page.getByRole("columnheader", { name: "Login" });
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await page.getByLabel("Search by login").fill("nobody");
  await page.getByText("No accounts match “nobody”.").waitFor();
});

test("maintenance is done now, and told", async () => {
  const token = await register("keeper");
  await push(token, 500);
  const page = await signedIn(await here.device());
  await page.getByLabel("Search by login").fill("keeper");
  const wal = async () => (await cells(page, "keeper"))[2];
  await until(async () => /[1-9].* KiB|MiB/.test((await wal()) ?? ""));
  await page.getByRole("button", { name: "Run maintenance" }).click();
  await page.getByRole("status").filter({ hasText: /Checked \d+ files?/ }).waitFor();
  await until(async () => (await wal()) === "0 B");
  await page.getByRole("button", { name: "Maintain the vaults of keeper" }).click();
  await page.getByRole("status").filter({ hasText: "Checked 1 file" }).waitFor();
});

test("nothing of the users' content comes to the page, and no device's name", async () => {
  const token = await register("ada");
  await push(token, 50);
  const device = await here.device();
  const answers: Promise<string>[] = [];
  device.context.on("response", (response) => {
    if (response.url().includes("/v1/admin/")) answers.push(response.text());
  });
  const page = await signedIn(device);
  await page.getByLabel("Search by login").fill("ada");
  await page.getByText("1–1 of 1").waitFor();
  const told = [await page.content(), ...(await Promise.all(answers))].join("\n");
  assert.ok(told.includes(`"login":"ada"`));
  for (const secret of [CONTENT, Buffer.from(CONTENT).toString("base64"), DEVICE_NAME, token]) {
    assert.ok(!told.includes(secret), secret);
  }
});

test("a server that is away is said to be, and found again", async () => {
  const device = await here.device();
  device.expectErrors(/Failed to load resource/);
  const page = await signedIn(device);
  const accounts = await tile(page, "Accounts").innerText();
  assert.equal(await tile(page, "Waiting mail").innerText(), "0");
  await here.server.stop();
  await page.getByRole("alert").filter({ hasText: "not responding" }).waitFor();
  await page.getByText(/Retrying/).waitFor();
  assert.equal(await tile(page, "Accounts").innerText(), accounts);
  await here.server.start();
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
});

/** The number of points that are enough for a picture. */
const SHOWN_POINTS = 12;

/** Returns the number of points in the first chart's line, one per second. */
async function points(page: Page): Promise<number> {
  const path = await page.locator("path.line").first().getAttribute("d");
  return (path ?? "").split("L").length;
}

test("everybody can use it: light, dark, and on a phone", async () => {
  const token = await register("shown");
  await push(token, 200);
  const shown = Object.entries(LOOKS).map(async ([look, options]) => {
    const device = await here.device(options);
    const page = await device.open("/admin");
    await page.getByLabel("Admin token").waitFor();
    await lookAt(page, `admin-sign-in-${look}`);
    const inside = await signedIn(device);
    await until(async () => (await points(inside)) > SHOWN_POINTS);
    const width = await inside.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= (options.viewport?.width ?? 0), `${width} is wider than the screen`);
    await lookAt(inside, `admin-${look}`, true);
  });
  await pushingWhile(token, async () => void (await Promise.all(shown)));
});

test("the page says first that writes are refused, or files damaged, and why", async () => {
  const page = await signedIn(await here.device());
  const banner = page.getByRole("region", { name: "Problems" });
  assert.equal(await banner.count(), 0);
  const readiness = {
    ready: false,
    disk_full: true,
    accounts_poisoned: false,
    poisoned_vaults_count: 2,
    accounts_damaged: false,
    damaged_vaults_count: 1,
    stalled_backups_count: 1,
  };
  await page.route("**/v1/admin/overview", async (route) => {
    const answer = await route.fetch();
    const overview = (await answer.json()) as object;
    await route.fulfill({ response: answer, json: { ...overview, readiness } });
  });
  await banner.waitFor();
  const text = (await banner.textContent()) ?? "";
  assert.match(text, /data directory’s disk is full/);
  assert.match(text, /Disk errors on 2 vaults/);
  assert.match(text, /1 vault damaged again/);
  assert.match(text, /backup has stalled/);
  await page.unroute("**/v1/admin/overview");
  await banner.waitFor({ state: "detached" });
});

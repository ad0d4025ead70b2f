/**
 * Tests Plan with 10,000 items on two devices, and prints times next to the results: `cargo xtask
 * browser plan-large`. Times are printed but never checked, because machines differ.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { bed } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import { openPlan, type PlanScreen } from "./plan/screen.js";

const here = bed();
const ITEMS_COUNT = 10_000;
const REPEATS = 11;

test("10,000 items come to a second device, its progress is seen, it stays quick", async (t) => {
  const first = await openPlan(await here.device());
  await importItems(first);
  const phrase = await first.signUp("max", "e2ee");
  await expect(first.pill).toHaveText("Synced");

  const second = await openPlan(await here.device());
  const seen = watchPill(second.page);
  const startMs = Date.now();
  await second.signIn("max");
  const ask = second.page.getByTestId("enter-phrase");
  await ask.getByLabel("Recovery phrase").fill(phrase ?? "");
  await ask.getByRole("button", { name: "Unlock" }).click();
  await expect(ask).toBeGone();
  await expect(second.pill).toHaveText("Synced");
  t.diagnostic(`from the sign-in to in sync: ${Date.now() - startMs} ms`);
  const counts = (await seen()).flatMap((text) => [...text.matchAll(/([\d,]+) \/ ([\d,]+)/g)]);
  assert.ok(
    counts.some(([, done, total]) => done !== total),
    `the pill showed ${[...new Set(counts.map(([whole]) => whole))].join("; ")}`,
  );

  await second.goTo("List 1");
  await expect(second.item("Item 1")).toBeVisible();
  await second.item("Item 1").first().hover();
  await tellFrames(t, second.page, "scrolling 2,500 items", async () => {
    for (let step = 0; step < 40; step += 1) await second.page.mouse.wheel(0, 3_000);
    await expect(second.item("Item 9997")).toBeVisible();
  });
  await tellFrames(t, second.page, "searching 10,000 items, letter by letter", async () => {
    await second.page.keyboard.press("/");
    await second.page.keyboard.type("note 4321", { delay: 30 });
    await eventually(async () => assert.deepEqual(await second.titles(), ["Item 4321"]));
  });
});

test("an edit is soon on the other screen, and so is the app on a new device", async (t) => {
  const first = await openPlan(await here.device());
  await first.signUp("uma", "plaintext");
  const second = await openPlan(await here.device());
  await second.signIn("uma");
  await expect(second.pill).toHaveText("Synced");
  const latencies: number[] = [];
  for (let number = 0; number < REPEATS; number += 1) {
    const title = `Edit ${number} of many`;
    const [pressed, shown] = [watchEnter(first.page), watchText(second.page, title)];
    await first.add(title);
    latencies.push((await shown) - (await pressed));
  }
  t.diagnostic(`from a key press to the other screen: ${spread(latencies)}`);

  const loads: number[] = [];
  for (let number = 0; number < REPEATS; number += 1) {
    const page = await (await here.device()).context.newPage();
    const startMs = performance.now();
    await page.goto(here.server.address);
    await page.getByLabel("Add an item", { exact: false }).first().waitFor();
    loads.push(performance.now() - startMs);
  }
  t.diagnostic(`first load, nothing cached, to a list that takes items: ${spread(loads)}`);
});

async function importItems(plan: PlanScreen): Promise<void> {
  const rows = Array.from({ length: ITEMS_COUNT }, (_, i) => `Item ${i},note ${i},List ${i % 4}`);
  const buffer = Buffer.from(`title,note,list\n${rows.join("\n")}`);
  await plan.openSettings();
  const settings = plan.page.getByTestId("settings");
  await settings.getByRole("button", { name: "Import a file" }).click();
  const file = { name: "plan.csv", mimeType: "text/csv", buffer };
  await plan.page.locator("input[type=file]").setInputFiles(file);
  await plan.page.getByRole("button", { name: "Import 10,000 items" }).click();
  await expect(plan.toast).toHaveText("Imported 10,000 items");
}

/** Returns the time at which Enter is next pressed. */
function watchEnter(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const note = (event: KeyboardEvent): void => {
          if (event.key !== "Enter") return;
          removeEventListener("keydown", note, true);
          resolve(Date.now());
        };
        addEventListener("keydown", note, true);
      }),
  );
}

/** Returns the time at which a text appears. */
function watchText(page: Page, text: string): Promise<number> {
  return page.evaluate(
    (wanted) =>
      new Promise<number>((resolve) => {
        const look = new MutationObserver(() => {
          if (!document.body.textContent.includes(wanted)) return;
          look.disconnect();
          resolve(Date.now());
        });
        look.observe(document.body, { subtree: true, childList: true, characterData: true });
      }),
    text,
  );
}

/** Records the texts of the pill from now on. */
function watchPill(page: Page): () => Promise<string[]> {
  const watching = page.evaluate(() => {
    const texts: string[] = [];
    Object.assign(globalThis, { pillTexts: texts });
    const pill = (): Element | null => document.querySelector("[data-testid=sync-pill]");
    const note = (): unknown => texts.push(pill()?.textContent ?? "");
    new MutationObserver(note).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  return async () => {
    await watching;
    return page.evaluate(() => (globalThis as unknown as { pillTexts: string[] }).pillTexts);
  };
}

/** Prints the intervals between frames during `work`. */
async function tellFrames(
  t: TestContext,
  page: Page,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  await page.evaluate(() => {
    const gaps: number[] = [];
    Object.assign(globalThis, { frameGaps: gaps });
    let last = performance.now();
    const frame = (now: number): void => {
      gaps.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await work();
  const gaps = await page.evaluate(
    () => (globalThis as unknown as { frameGaps: number[] }).frameGaps,
  );
  assert.ok(gaps.length > 1, "frames were drawn");
  t.diagnostic(`${what}: from frame to frame ${spread(gaps)}`);
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN).toFixed();
  return `${at(0.5)} ms in the median, 95 % within ${at(0.95)} ms, at most ${at(1)} ms`;
}

/**
 * Assertions about the screen that may come true within a time limit: they are repeated until they
 * hold.
 */
import assert from "node:assert/strict";
import type { Locator } from "playwright-core";

/** The time limit for an assertion: a busy machine is slow. */
const HOLD_MS_MAX = 30_000;
const AGAIN_MS = 20;

export interface PageExpectations {
  toHaveText(text: string | RegExp, withinMs?: number): Promise<void>;
  toBeDisabled(): Promise<void>;
  toBeVisible(withinMs?: number): Promise<void>;
  toBeGone(withinMs?: number): Promise<void>;
  toHaveCount(count: number): Promise<void>;
}

export function expect(locator: Locator): PageExpectations {
  const first = locator.first();
  const holds = (check: Promise<void>): Promise<void> =>
    check.catch(async (error: unknown) => {
      throw new Error(`${String(error)}\nThe page shows:\n${await pageText(locator)}`);
    });
  return {
    toHaveText: (text, withinMs) =>
      holds(
        eventually(async () => {
          const present = ((await first.textContent({ timeout: 1000 })) ?? "").trim();
          const fits = typeof text === "string" ? present.includes(text) : text.test(present);
          assert.ok(fits, `${JSON.stringify(present)} is not ${String(text)}`);
        }, withinMs),
      ),
    toBeDisabled: () => holds(eventually(async () => assert.ok(await locator.isDisabled()))),
    toBeVisible: (withinMs) => holds(first.waitFor({ timeout: withinMs ?? HOLD_MS_MAX })),
    toBeGone: (withinMs) =>
      holds(first.waitFor({ state: "detached", timeout: withinMs ?? HOLD_MS_MAX })),
    toHaveCount: (count) =>
      holds(eventually(async () => assert.equal(await locator.count(), count))),
  };
}

/** Returns the text of the whole page, for the error of a failed assertion. */
function pageText(locator: Locator): Promise<string> {
  const text = locator.page().locator("body").innerText({ timeout: 1000 });
  return text.catch((error: unknown) => `(cannot be read: ${String(error)})`);
}

/** Repeats `claim` until it does not throw; after the time limit, throws its last error. */
export async function eventually(
  claim: () => Promise<void>,
  withinMs: number = HOLD_MS_MAX,
): Promise<void> {
  const untilMs = Date.now() + withinMs;
  for (;;) {
    try {
      return await claim();
    } catch (error) {
      if (Date.now() > untilMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

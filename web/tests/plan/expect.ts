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
  return {
    toHaveText: (text, withinMs) =>
      eventually(async () => {
        const present = ((await locator.first().textContent({ timeout: 1000 })) ?? "").trim();
        const holds = typeof text === "string" ? present.includes(text) : text.test(present);
        assert.ok(holds, `${JSON.stringify(present)} is not ${String(text)}`);
      }, withinMs),
    toBeDisabled: () => eventually(async () => assert.ok(await locator.isDisabled())),
    toBeVisible: (withinMs) => locator.first().waitFor({ timeout: withinMs ?? HOLD_MS_MAX }),
    toBeGone: (withinMs) =>
      locator.first().waitFor({ state: "detached", timeout: withinMs ?? HOLD_MS_MAX }),
    toHaveCount: (count) => eventually(async () => assert.equal(await locator.count(), count)),
  };
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

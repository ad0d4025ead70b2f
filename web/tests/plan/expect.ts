/**
 * Claims about the screen that come true within a time: they are asked again until they hold.
 */
import assert from "node:assert/strict";
import type { Locator } from "playwright-core";

/** On a machine that is busy everything takes its time. */
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

/** Runs it until it does not throw, or throws what it threw last. */
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

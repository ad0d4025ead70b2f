/**
 * Checks for every screen: axe in light, in dark, on a phone. If `WARREN_SCREENS` names a folder,
 * a picture of each screen is saved there (`docs/screens`; needs ImageMagick).
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import axe from "axe-core";
import type { BrowserContextOptions, Page } from "playwright-core";

const MONITOR = { width: 1200, height: 760 };

export const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { viewport: MONITOR, colorScheme: "light" },
  dark: { viewport: MONITOR, colorScheme: "dark" },
  phone: {
    viewport: { width: 390, height: 844 },
    colorScheme: "light",
    hasTouch: true,
    isMobile: true,
  },
};

/** Options for pictures with few colors, so that they are small. */
const SMALL = ["-strip", "+dither", "-colors", "64", "-define", "png:compression-level=9"];

interface AxeViolation {
  readonly id: string;
  readonly impact?: string | null;
  readonly nodes: readonly { readonly html: string }[];
}

/**
 * Asserts that axe finds no serious problem for users of screen readers or keyboards, or with poor
 * sight.
 */
export async function lookAt(page: Page, name: string, fullPage = false): Promise<void> {
  await page.mouse.move(0, 0);
  await page.evaluate(() => Promise.all(document.getAnimations().map((one) => one.finished)));
  await picture(page, name, fullPage);
  await page.evaluate(axe.source);
  const findings = await page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: AxeViolation[] }> };
    };
    return (await checker.run()).violations;
  });
  const serious = findings.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  assert.deepEqual(told, [], name);
}

async function picture(page: Page, name: string, fullPage: boolean): Promise<void> {
  const folder = process.env["WARREN_SCREENS"];
  if (folder === undefined) return;
  const file = join(folder, `${name}.png`);
  await page.screenshot({ path: file, fullPage });
  await promisify(execFile)("convert", [file, ...SMALL, `PNG8:${file}`]);
}

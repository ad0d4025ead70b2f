/**
 * The fixture of browser tests: a server, and a Chromium with as many devices as a test wants.
 *
 * ```ts
 * const here = bed();
 *
 * test("what is typed is there after a reload", async () => {
 *   const page = await (await here.device()).open("/");
 *   …
 * });
 * ```
 *
 * - Each file has one server and one browser; they start before its first test and end after its
 *   last.
 * - A device is a browser context with its own storage, service worker and cache. It ends with its
 *   test.
 * - An error on any console, or one that a page did not catch, fails the test, unless the test
 *   expects it. That includes everything that the content security policy refuses.
 */
import assert from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before } from "node:test";
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from "playwright-core";
import { findBrowser } from "../../tests/actual/browser.js";
import { startServer, type WarrenServer } from "./server.js";

export { ADMIN_TOKEN, PASSWORD, type WarrenServer } from "./server.js";

/** The time limit for content to appear: a busy machine is slow. */
const APPEAR_MS_MAX = 30_000;

/** Browser flags that turn off features that tests do not use, and allow running as root. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface BrowserFixtureOptions {
  /** Further arguments of `warren serve`. */
  readonly serve?: readonly string[];
}

export interface BrowserFixture {
  readonly server: WarrenServer;
  device(options?: BrowserContextOptions): Promise<BrowserDevice>;
  /**
   * Opens a device whose files are on the disk, as a user's are; those of {@link device} are in
   * its browser's memory. It is a browser of its own, and takes longer to start.
   */
  deviceOnDisk(): Promise<BrowserDevice>;
}

export interface BrowserDevice {
  readonly context: BrowserContext;
  /** Opens a new tab at a path of the server. */
  open(path: string): Promise<Page>;
  /** Allows errors with this text from now on, for example those of an unreachable server. */
  expectErrors(text: RegExp): void;
}

interface ManagedBrowserDevice extends BrowserDevice {
  /** Unexpected errors on the device's consoles. */
  readonly errors: string[];
}

/**
 * Registers the hooks that set the fixture up and tear it down; called once, at the top of a file.
 */
export function bed(options: BrowserFixtureOptions = {}): BrowserFixture {
  let server: WarrenServer | undefined;
  let browser: Browser | undefined;
  const devices: ManagedBrowserDevice[] = [];
  const start = { executablePath: findBrowser(chromium), args: FLAGS };
  const keep = (context: BrowserContext): BrowserDevice => {
    const device = toDevice(context, () => started(server).address);
    devices.push(device);
    return device;
  };

  before(async () => {
    server = await startServer(options.serve);
    browser = await chromium.launch(start);
  });
  afterEach(async () => {
    const ended = devices.splice(0);
    await Promise.all(ended.map(({ context }) => context.close()));
    assert.deepEqual(ended.flatMap(({ errors }) => errors), []);
  });
  after(async () => {
    await browser?.close();
    await server?.remove();
  });

  return {
    get server() {
      return started(server);
    },
    device: async (contextOptions) => keep(await started(browser).newContext(contextOptions)),
    deviceOnDisk: async () => {
      const profile = await mkdtemp(join(started(server).folder, "profile-"));
      return keep(await chromium.launchPersistentContext(profile, start));
    },
  };
}

function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the bed is there while a test runs");
  return part;
}

function toDevice(context: BrowserContext, address: () => string): ManagedBrowserDevice {
  const errors: string[] = [];
  const expected: RegExp[] = [];
  const note = (text: string): void => {
    if (!expected.some((pattern) => pattern.test(text))) errors.push(text);
  };
  context.setDefaultTimeout(APPEAR_MS_MAX);
  context.on("console", (message) => {
    if (message.type() === "error") note(`${message.text()} (${message.location().url})`);
  });
  context.on("weberror", (error) => note(String(error.error())));
  return {
    context,
    errors,
    open: async (path) => {
      const page = await context.newPage();
      await page.goto(new URL(path, address()).href);
      return page;
    },
    expectErrors: (text) => void expected.push(text),
  };
}

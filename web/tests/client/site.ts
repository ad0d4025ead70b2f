/**
 * A site of a developer's own with `@warren/client` in it: `web/client/dist` under a strict policy,
 * and the server's API on the same origin. What goes to the API can be looked at, and held back.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { after, before } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import type { WarrenDatabase, OpenOptions, SyncState } from "../../client/src/index.js";
import type { BrowserFixture, BrowserDevice } from "../harness.js";

const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src data:";
const KINDS: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".wasm": "application/wasm",
};
const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Test</title>
<link rel="icon" href="data:,"><ul></ul><script type="module" src="/page.js"></script></html>`;
/** The package within reach of the test. */
export const REACHABLE = 'import * as warren from "./index.js"; globalThis.warren = warren;';
/** As in a private window of Firefox. */
const WITHOUT_FILES = `import "./worker.js";
const refused = new DOMException("Security error when calling GetDirectory", "SecurityError");
StorageManager.prototype.getDirectory = () => Promise.reject(refused);`;
/** As where a response's body is no stream of bytes: Safari's. */
const WITHOUT_BYOB = `import "./worker.js";
const { getReader } = ReadableStream.prototype;
ReadableStream.prototype.getReader = function (options) {
  if (options?.mode === "byob") throw new TypeError("no stream of bytes");
  return getReader.call(this, options);
};`;
/** Where the browser opens no file; its exception's name and message are in the address. */
const FAILING = `import "./worker.js";
const { searchParams } = new URL(import.meta.url);
const thrown = new DOMException(searchParams.get("message"), searchParams.get("name"));
const { createSyncAccessHandle } = FileSystemFileHandle.prototype;
let left = Number(searchParams.get("count") ?? Infinity);
FileSystemFileHandle.prototype.createSyncAccessHandle = function () {
  return left-- > 0 ? Promise.reject(thrown) : createSyncAccessHandle.call(this);
};`;
/** Dies for the files amid a change of the key: after so many operations none reaches them. */
const DYING = `import "./worker.js";
const after = Number(new URL(import.meta.url).searchParams.get("after"));
const files = FileSystemSyncAccessHandle.prototype;
let count = 0;
let isCounting = false;
for (const name of ["write", "truncate", "flush"]) {
  const real = files[name];
  files[name] = function (...given) {
    if (isCounting && ++count > after) throw new DOMException("gone", "InvalidStateError");
    return real.apply(this, given);
  };
}
const hear = self.onmessage;
self.onmessage = (event) => {
  if (event.data.method === "rekey") isCounting = true;
  if (event.data.kind === "close") new BroadcastChannel("operations").postMessage(count);
  hear(event);
};`;
/** By `cargo xtask browser`, from the repository's root. */
const DIST = "web/client/dist";

declare global {
  var warren: typeof import("../../client/src/index.js");
  /** The database that a page has open. */
  var db: WarrenDatabase;
}

export const SCHEMA = "CREATE TABLE item (id TEXT PRIMARY KEY, name TEXT)";

export interface TestSite {
  readonly address: string;
  /** What goes to the API and comes from it, once there is a list for it. */
  traffic?: Buffer[];
  /** Whether the API is away. */
  isAway: boolean;
  /** A tab with the page. */
  open(device: BrowserDevice): Promise<Page>;
  /** A tab with the page, and a database open in it. */
  openDatabase(device: BrowserDevice, options?: Partial<OpenOptions>): Promise<Page>;
}

/**
 * Registers the hooks of a site beside the bed's; `script` is the page's module, `policy` what it
 * may load.
 */
export function site(
  here: BrowserFixture,
  script: { readonly text: string } = { text: REACHABLE },
  policy = POLICY,
): TestSite {
  let address = "";
  const it: TestSite = {
    isAway: false,
    get address() {
      return address;
    },
    async open(device) {
      return device.open(address);
    },
    async openDatabase(device, options = {}) {
      const page = await device.open(address);
      await until(page, () => "warren" in globalThis);
      await page.evaluate(openHere, { name: "plan", schema: SCHEMA, track: ["item"], ...options });
      return page;
    },
  };
  const server = createServer((asked, answer) => {
    const path = new URL(asked.url ?? "/", "http://here").pathname;
    if (!path.startsWith("/v1/")) {
      answer.setHeader("content-security-policy", policy);
      void serve(path, script.text, answer);
    } else if (it.isAway) {
      answer.destroy();
    } else {
      pass(here.server.address, asked, answer, it.traffic);
    }
  });
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return it;
}

async function openHere(options: OpenOptions): Promise<void> {
  globalThis.db = await warren.open(options);
}

async function serve(path: string, script: string, answer: ServerResponse): Promise<void> {
  if (path === "/") {
    answer.setHeader("content-type", "text/html").end(PAGE);
    return;
  }
  const made: Readonly<Record<string, string>> = {
    "/page.js": script,
    "/worker-without-files.js": WITHOUT_FILES,
    "/worker-without-byob.js": WITHOUT_BYOB,
    "/worker-dying.js": DYING,
    "/worker-failing.js": FAILING,
  };
  answer.setHeader("content-type", KINDS[extname(path)] ?? "text/plain");
  try {
    answer.end(made[path] ?? (await readFile(join(DIST, path))));
  } catch {
    answer.writeHead(404).end();
  }
}

function pass(
  to: string,
  asked: IncomingMessage,
  answer: ServerResponse,
  seen: Buffer[] | undefined,
): void {
  const { method, headers } = asked;
  // So that what is seen can be read.
  delete headers["accept-encoding"];
  const onward = request(to + (asked.url ?? ""), { method, headers }, (back) => {
    answer.writeHead(back.statusCode ?? 502, back.headers);
    back.on("data", (piece: Buffer) => seen?.push(piece));
    back.on("error", () => answer.destroy());
    back.pipe(answer);
  });
  asked.on("data", (piece: Buffer) => seen?.push(piece));
  onward.on("error", () => answer.destroy());
  answer.on("close", () => onward.destroy());
  asked.pipe(onward);
}

/** How long what is waited for may take, and how often it is asked for. */
const APPEAR_MS_MAX = 30_000;
const POLL_MS = 30;

/**
 * Waits until a page says so. It may be a tab in the background, which draws no frames; and
 * `waitForFunction` takes a promise for yes.
 */
export async function until(page: Page, holds: () => boolean | Promise<boolean>): Promise<void> {
  const lastMs = Date.now() + APPEAR_MS_MAX;
  while (!(await page.evaluate(holds))) {
    if (Date.now() > lastMs) throw new Error(`it did not come to this: ${String(holds)}`);
    await setTimeout(POLL_MS);
  }
}

/** Waits until the database stands so. */
export async function untilPhase(page: Page, phase: SyncState["phase"]): Promise<SyncState> {
  const found = await page.waitForFunction(
    (wanted) => {
      const { sync } = db.status.value;
      return sync.phase === wanted ? sync : undefined;
    },
    phase,
    { polling: 20 },
  );
  return (await found.jsonValue()) as SyncState;
}

/**
 * A developer's own site that uses `@warren/client`: `web/client/dist` under a strict policy, and
 * the server's API on the same origin. Tests can inspect the traffic with the API, and block it.
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
/** The page's script, which gives tests access to the package. */
export const REACHABLE = 'import * as warren from "./index.js"; globalThis.warren = warren;';
/** A worker without files, as in a private window of Firefox. */
const WITHOUT_FILES = `import "./worker.js";
const refused = new DOMException("Security error when calling GetDirectory", "SecurityError");
StorageManager.prototype.getDirectory = () => Promise.reject(refused);`;
/** A worker whose response bodies are not byte streams, as in Safari. */
const WITHOUT_BYOB = `import "./worker.js";
const { getReader } = ReadableStream.prototype;
ReadableStream.prototype.getReader = function (options) {
  if (options?.mode === "byob") throw new TypeError("no stream of bytes");
  return getReader.call(this, options);
};`;
/** A worker whose files do not open; the exception's name and message are in the address. */
const FAILING = `import "./worker.js";
const { searchParams } = new URL(import.meta.url);
const thrown = new DOMException(searchParams.get("message"), searchParams.get("name"));
const { createSyncAccessHandle } = FileSystemFileHandle.prototype;
let left = Number(searchParams.get("count") ?? Infinity);
FileSystemFileHandle.prototype.createSyncAccessHandle = function () {
  return left-- > 0 ? Promise.reject(thrown) : createSyncAccessHandle.call(this);
};`;
/**
 * A worker that dies during a change of the key: after `after` operations none reaches the files.
 */
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
/**
 * The built package, relative to the repository's root, where `cargo xtask browser` runs the
 * tests.
 */
const DIST = "web/client/dist";

declare global {
  var warren: typeof import("../../client/src/index.js");
  /** The database that a page has open. */
  var db: WarrenDatabase;
}

export const SCHEMA = "CREATE TABLE item (id TEXT PRIMARY KEY, name TEXT)";

export interface TestSite {
  readonly address: string;
  /** The traffic to and from the API, once a test has set a list for it. */
  traffic?: Buffer[];
  /** Whether the API is unreachable. */
  isAway: boolean;
  /** Opens a tab with the page. */
  open(device: BrowserDevice): Promise<Page>;
  /** Opens a tab with the page, and a database in it. */
  openDatabase(device: BrowserDevice, options?: Partial<OpenOptions>): Promise<Page>;
}

/**
 * Registers the hooks of a site that uses the fixture's server; `script` is the page's module,
 * `policy` its content security policy.
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
  // Uncompressed, so that the recorded traffic is readable.
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

/** The time limit for an expected state, and the pause between two checks. */
const APPEAR_MS_MAX = 30_000;
const POLL_MS = 30;

/**
 * Waits until `holds` returns true in a page. The page may be a tab in the background, which draws
 * no frames; and `waitForFunction` takes a promise for true.
 */
export async function until(page: Page, holds: () => boolean | Promise<boolean>): Promise<void> {
  const lastMs = Date.now() + APPEAR_MS_MAX;
  while (!(await page.evaluate(holds))) {
    if (Date.now() > lastMs) throw new Error(`it did not come to this: ${String(holds)}`);
    await setTimeout(POLL_MS);
  }
}

/** Waits until the database's sync is in this phase. */
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

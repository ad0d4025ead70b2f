/** Tests the site as the server serves it and a browser loads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bed } from "./harness.js";

const here = bed();

const ask = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  fetch(here.server.address + path, { headers });

/** Lists the files that the service worker stores: every file of the app. */
async function files(): Promise<readonly string[]> {
  const text = await (await ask("/sw.js")).text();
  const found = [...text.matchAll(/"(\/[\w./-]*\.\w+)"/g)].flatMap(([, path]) => path ?? []);
  return [...new Set(found)];
}

test("the app's files are all there, each of its kind and kept as long as it may", async () => {
  const paths = await files();
  for (const kind of ["wasm", "js", "css", "html", "webmanifest"]) {
    assert.ok(paths.some((path) => path.endsWith(`.${kind}`)), `no ${kind} in ${paths}`);
  }
  for (const path of ["/", "/sw.js", ...paths]) {
    const answer = await ask(path);
    assert.equal(answer.status, 200, path);
    const isHashed = /^\/assets\/.+-[0-9A-Z]{8}\.\w+$/.test(path);
    assert.equal(path.startsWith("/assets/"), isHashed, path);
    const cached = isHashed ? "public, max-age=31536000, immutable" : "no-cache";
    assert.equal(answer.headers.get("cache-control"), cached, path);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    if (path.endsWith(".wasm")) {
      assert.equal(answer.headers.get("content-type"), "application/wasm");
    }
  }
});

test("what has a Brotli form comes in it, is the same, and is not sent twice", async () => {
  for (const path of (await files()).filter((file) => /\.(wasm|js|css)$/.test(file))) {
    const packed = await ask(path, { "accept-encoding": "br" });
    const plain = await ask(path, { "accept-encoding": "identity" });
    assert.equal(packed.headers.get("content-encoding"), "br", path);
    assert.equal(plain.headers.get("content-encoding"), null, path);
    assert.ok(Number(packed.headers.get("content-length")) < (await size(plain.clone())), path);
    // `fetch` has undone the compression.
    assert.deepEqual(await packed.arrayBuffer(), await plain.arrayBuffer(), path);
    const known = { "accept-encoding": "br", "if-none-match": packed.headers.get("etag") ?? "" };
    const again = await ask(path, known);
    assert.deepEqual([again.status, await size(again)], [304, 0], path);
  }
});

const size = async (answer: Response): Promise<number> => (await answer.arrayBuffer()).byteLength;

for (const path of ["/", "/admin"]) {
  test(`${path} shows something, and the policy refuses nothing of it`, async () => {
    const page = await (await here.device()).open(path);
    await page.waitForFunction(() => document.body.innerText.trim() !== "");
    assert.notEqual(await page.title(), "");
  });

  test(`${path} runs no script that was put into it`, async () => {
    const device = await here.device();
    device.expectErrors(/Content Security Policy/);
    const page = await device.open(path);
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "document.documentElement.dataset.ran = 'yes'";
      document.head.append(script);
      return document.documentElement.dataset["ran"];
    });
    assert.equal(ran, undefined);
  });
}

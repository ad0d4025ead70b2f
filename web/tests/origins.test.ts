/** Tests a page in another origin than the server's, where the server allows only its own pages. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { PASSWORD, bed } from "./harness.js";
import { REACHABLE, site } from "./client/site.js";

const here = bed();
// The page may call any server; the test is about whether the server allows that.
const there = site(here, { text: REACHABLE }, "script-src 'self' 'wasm-unsafe-eval'");

/** Starts an HTTPS server with a certificate that no browser trusts; returns its address. */
async function untrustedServer(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "warren-origins-"));
  t.after(() => rm(folder, { recursive: true }));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=127.0.0.1", "-days", "2"];
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert];
  await promisify(execFile)("openssl", [...request, ...subject]);
  const server = createServer({ key: await readFile(key), cert: await readFile(cert) });
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a server whose certificate may not be trusted is reported with what to do", async (t) => {
  const device = await here.device();
  device.expectErrors(/ERR_CERT_AUTHORITY_INVALID/);
  const server = await untrustedServer(t);
  const page = await there.openDatabase(device, { server });
  const message = await page.evaluate(async () => {
    const refused = db.signIn({ login: "ada", password: "a pass-phrase" });
    return refused.then(() => "done", (thrown: { message: string }) => thrown.message);
  });
  assert.match(message, /^cannot reach the server: /);
  assert.ok(message.includes(`open ${server} in a tab`), message);
});

test("a server that does not let this page ask is told from one that is away", async () => {
  const device = await here.device();
  device.expectErrors(/CORS policy|net::ERR_FAILED|ERR_CONNECTION_REFUSED/);
  const server = here.server.address;
  const page = await there.openDatabase(device, { server });
  const login = await here.server.account("elsewhere");
  const refusals = async (): Promise<readonly (readonly string[])[]> =>
    page.evaluate(
      async ([login, password]) => {
        const calls = [() => db.signIn({ login, password }), () => db.signUp({ login, password })];
        const told = [];
        for (const call of calls) {
          const error = await call().then(
            () => ({ code: "done", message: "" }),
            (thrown: { code: string; message: string }) => thrown,
          );
          told.push([error.code, error.message]);
        }
        return told;
      },
      [login, PASSWORD] as const,
    );
  const { origin } = new URL(there.address);
  const option = `the server at ${server} does not allow requests from ${origin}: `
    + `start it with \`--allow-origin ${origin}\``;
  assert.deepEqual(await refusals(), [
    ["origin_not_allowed", option],
    ["origin_not_allowed", option],
  ]);
  await here.server.stop();
  const codes = (await refusals()).map(([code]) => code);
  assert.deepEqual(codes, ["unreachable", "unreachable"]);
});

/** Tests a page in another origin than the server's, where the server allows only its own pages. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD, bed } from "./harness.js";
import { REACHABLE, site } from "./client/site.js";

const here = bed();
// The page may call any server; the test is about whether the server allows that.
const there = site(here, { text: REACHABLE }, "script-src 'self' 'wasm-unsafe-eval'");

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

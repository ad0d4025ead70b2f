/** Tests the hooks of `@warren/client/react` in React. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newApp, readme } from "./bundlers/app.js";
import { until } from "./client/site.js";
import { bed } from "./harness.js";

const here = bed();

/** An app that records the props of a component at each rendering that reached the screen. */
const MAIN = `
import { open } from "@warren/client";
import { useLive, useObservable } from "@warren/client/react";
import { createElement, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const schema = "CREATE TABLE n (id INTEGER PRIMARY KEY)";
const db = await open({ name: "numbers", schema });
await db.query("WITH s(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM s WHERE i < 100)"
  + " INSERT INTO n SELECT i FROM s");

globalThis.seen = [];
function Numbers() {
  const [ask, setAsk] = useState({ from: 1, isCounted: false });
  const { isLeader } = useObservable(db.status);
  const query = ask.isCounted
    ? db.live\`SELECT count(*) AS id FROM n WHERE id >= \${ask.from}\`
    : db.live\`SELECT id FROM n WHERE id >= \${ask.from}\`;
  const { rows, isLoading, isStale } = useLive(query);
  useEffect(() => {
    globalThis.seen.push([ask.from, rows.length, isLoading, isStale]);
  }, [ask, rows, isLoading, isStale]);
  globalThis.ask = setAsk;
  return createElement("p", {}, \`\${rows.length} rows, \${isLeader}\`);
}
createRoot(document.body.appendChild(document.createElement("div")))
  .render(createElement(Numbers));
globalThis.add = () => db.sql\`INSERT INTO n VALUES (101)\`;
`;

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">
<body><script type="module" src="/main.js"></script></body></html>`;

declare global {
  var seen: readonly (readonly [number, number, boolean, boolean])[];
  var ask: (ask: { from: number; isCounted: boolean }) => void;
  var add: () => Promise<unknown>;
}

test("rows stay while parameters change, and never those of another text", async (t) => {
  const files = { "main.js": MAIN, "public/index.html": PAGE };
  const app = await newApp("react", files, ["react", "react-dom"]);
  t.after(() => app.remove());
  const [commands] = await readme("sh");
  assert.ok(commands !== undefined);
  await app.run("bash", "-c", commands);
  const page = await (await here.device()).open(await app.serveFolder("public"));
  await page.getByText("100 rows, true").waitFor();
  await page.evaluate(() => ask({ from: 98, isCounted: false }));
  await page.getByText("3 rows, true").waitFor();
  await page.evaluate(() => add());
  await page.getByText("4 rows, true").waitFor();
  await page.evaluate(() => ask({ from: 98, isCounted: true }));
  await until(page, () => seen.length === 7);
  assert.deepEqual(await page.evaluate(() => seen), [
    [1, 0, true, false],
    [1, 100, false, false],
    [98, 100, false, true],
    [98, 3, false, false],
    [98, 4, false, false],
    [98, 0, true, false],
    [98, 1, false, false],
  ]);
});

/**
 * Tests `@warren/client` in apps of users: the archive that npm makes of it, and the code of its
 * README, in each bundler that the README names, opened in Chromium.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join, resolve } from "node:path";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { newApp, readme, type App } from "./bundlers/app.js";
import { bed } from "./harness.js";

const here = bed();
const apps: App[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.remove()));
});

const HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">';
const pageWith = (script: string): string =>
  `${HEAD}<ul></ul><script type="module" src="${script}"></script></html>`;

/** A form; the README's example shows its list below it. */
const MAIN = `import { add } from "./notes.js";
const input = Object.assign(document.createElement("input"), { ariaLabel: "Note" });
input.onchange = () => void add(input.value);
document.body.prepend(input);
`;

/** Returns the README's first example, in JavaScript. */
async function exampleFiles(): Promise<Readonly<Record<string, string>>> {
  const [example] = await readme("ts");
  assert.ok(example !== undefined);
  return { "notes.js": stripTypeScriptTypes(example), "main.js": MAIN };
}

async function app(...given: Parameters<typeof newApp>): Promise<App> {
  const made = await newApp(...given);
  apps.push(made);
  return made;
}

/** Writes a note, and waits for it in the list, also after the page was reloaded. */
async function write(page: Page): Promise<void> {
  await page.getByLabel("Note").fill("from a bundle");
  await page.getByLabel("Note").press("Enter");
  const note = page.getByRole("listitem").getByText("from a bundle");
  await note.waitFor();
  await page.reload();
  await note.waitFor();
}

async function check(address: string): Promise<void> {
  await write(await (await here.device()).open(address));
}

const VITE = "vite/bin/vite.js";
const VITE_7 = "vite-7/bin/vite.js";
/** Arguments that make Vite choose a free port. */
const SERVE = ["--host", "127.0.0.1", "--port", "0"];

test("Vite 8, in development and built", async () => {
  const files = { ...(await exampleFiles()), "index.html": pageWith("/main.js") };
  const made = await app("vite", files);
  await check(await made.serve(VITE, ...SERVE));
  await made.run(VITE, "build");
  await check(await made.serveFolder("dist"));
});

test("the worker and the wasm under the names that the package gives them", async () => {
  const [example] = await readme("ts");
  assert.ok(example !== undefined);
  const named = `import worker from "@warren/client/worker?url";
import wasm from "@warren/client/wasm?url";
${stripTypeScriptTypes(example).replace('track: ["note"],', '$& assets: { worker, wasm },')}`;
  const page = pageWith("/main.js");
  const made = await app("named", { "notes.js": named, "main.js": MAIN, "index.html": page });
  await check(await made.serve(VITE, ...SERVE));
  await made.run(VITE, "build");
  await check(await made.serveFolder("dist"));
});

test("Vite 7, in development, as it says itself, and built", async () => {
  const files = { ...(await exampleFiles()), "index.html": pageWith("/main.js") };
  const made = await app("vite-7", files);
  const device = await here.device();
  device.expectErrors(/404|optimizeDeps/);
  const page = await device.context.newPage();
  const told = page.waitForEvent("pageerror");
  await page.goto(await made.serve(VITE_7, ...SERVE));
  const { message } = await told;
  assert.match(message, /\/node_modules\/\.vite\/deps\/worker\.js: add `optimizeDeps: \{ exclude/);

  const [config] = await readme("js");
  assert.ok(config !== undefined && message.includes(config.slice(17, -4)), message);
  await writeFile(join(made.folder, "vite.config.js"), config);
  await check(await made.serve(VITE_7, ...SERVE));
  await made.run(VITE_7, "build");
  await check(await made.serveFolder("dist"));
});

test("webpack 5", async () => {
  const files = { ...(await exampleFiles()), "dist/index.html": pageWith("/main.js") };
  const made = await app("webpack", files);
  await made.run("webpack-cli/bin/cli.js", "--entry", "./main.js", "--mode", "production");
  await check(await made.serveFolder("dist"));
});

test("esbuild: without the two files that is told at once, and with them it runs", async () => {
  const files = { ...(await exampleFiles()), "public/index.html": pageWith("/main.js") };
  const made = await app("esbuild", files);
  const [commands] = await readme("sh");
  const [bundle, copy] = commands?.trim().split("\n") ?? [];
  assert.ok(bundle !== undefined && copy !== undefined);
  await made.run("bash", "-c", bundle);
  const address = await made.serveFolder("public");
  const device = await here.device();
  device.expectErrors(/404|could not be loaded/);
  const page = await device.context.newPage();
  const told = page.waitForEvent("pageerror");
  await page.goto(address);
  const { message } = await told;
  assert.ok(message.includes(`else at ${address}worker.js: put worker.js and replica_bg.wasm`));

  await made.run("bash", "-c", copy);
  await check(address);
});

/** A type that no row can have is refused as an interface, too. */
const REFUSED = `import type { WarrenDatabase } from "@warren/client";
interface DatedRow { day: Date }
// @ts-expect-error
export const read = (db: WarrenDatabase) => db.sql<DatedRow>\`SELECT day FROM item\`;
`;

test("Next.js 16, in development and built, and the types of the README", async () => {
  const [component] = await readme("tsx");
  const [example] = await readme("ts");
  assert.ok(component !== undefined && example !== undefined);
  const layout = `export default ({ children }) =>
  <html lang="en"><head><link rel="icon" href="data:," /></head><body>{children}</body></html>;`;
  const page = 'import { Notes } from "./notes"; export default () => <Notes />;';
  const strict = { strict: true, noEmit: true, skipLibCheck: false, types: [] };
  const library = { lib: ["es2023", "esnext.disposable", "dom", "dom.iterable"], target: "es2023" };
  const modules = { module: "esnext", moduleResolution: "bundler", jsx: "react-jsx" };
  const files = {
    "types/notes.tsx": component,
    "types/notes.ts": example,
    "types/refused.ts": REFUSED,
    "types/tsconfig.json": JSON.stringify({
      compilerOptions: { ...strict, ...library, ...modules },
      include: ["."],
    }),
    "app/layout.jsx": layout,
    "app/page.jsx": page,
  };
  const made = await app("next", files, "all");
  await made.run(resolve("web/node_modules/.bin/tsc"), "-p", "types");
  const plain = ["--jsx=preserve", "--outfile=app/notes.jsx", "types/notes.tsx"];
  await made.run("esbuild/bin/esbuild", ...plain);
  await check(await made.serve("next/dist/bin/next", "dev", "--port", "0"));
  await made.run("next/dist/bin/next", "build");
  await check(await made.serve("next/dist/bin/next", "start", "--port", "0"));
});

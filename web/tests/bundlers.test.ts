/**
 * Tests `@warren/client` in apps of users: the archive that npm makes of it, and the code of its
 * README, in each bundler that the README names and without one, opened in two browsers that sync.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join, resolve } from "node:path";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { codeBlocks, newApp, readme, type App } from "./bundlers/app.js";
import { PASSWORD, bed } from "./harness.js";

// Each app is served from an origin of its own, whose port is known only when it runs.
const here = bed({ serve: ["--allow-origin", "*"] });
const apps: App[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.remove()));
});

declare global {
  /** The way in for tests: the page's example signs in to this account. */
  var signIn: (login: string, password: string) => Promise<void>;
}

const HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">';
const pageWith = (script: string, head = ""): string =>
  `${HEAD}${head}<ul></ul><script type="module" src="${script}"></script></html>`;

/** A form; the README's example shows its list below it. */
const MAIN = `import { add } from "./notes.js";
const input = Object.assign(document.createElement("input"), { ariaLabel: "Note" });
input.onchange = () => void add(input.value);
document.body.prepend(input);
`;

/** Makes an example of the README sync with the fixture's server, and gives the test a way in. */
function connected(example: string, signIn: string): string {
  const options = 'track: ["note"],';
  assert.ok(example.includes(options));
  const server = JSON.stringify(here.server.address);
  return `${example.replace(options, `$& server: ${server},`)}\nglobalThis.signIn = ${signIn};\n`;
}

/** Returns the README's first example, in JavaScript. */
async function exampleFiles(): Promise<Readonly<Record<"notes.js" | "main.js", string>>> {
  const [example] = await readme("ts");
  assert.ok(example !== undefined);
  return { "notes.js": connected(stripTypeScriptTypes(example), "signIn"), "main.js": MAIN };
}

/** Returns the README's React component. */
async function component(): Promise<string> {
  const [example] = await readme("tsx");
  assert.ok(example !== undefined);
  const account = "{ login, password, allowPlaintext: true }";
  return connected(example, `async (login, password) => (await openNotes()).signIn(${account})`);
}

async function app(...given: Parameters<typeof newApp>): Promise<App> {
  const made = await newApp(...given);
  apps.push(made);
  return made;
}

/** Writes a note, and waits for it in the list. */
async function write(page: Page, text: string): Promise<void> {
  await page.getByLabel("Note").fill(text);
  await page.getByLabel("Note").press("Enter");
  await shows(page, text);
}

async function shows(page: Page, text: string): Promise<void> {
  await page.getByRole("listitem").getByText(text).waitFor();
}

let accountsCount = 0;

/** Checks that a note survives a reload, and that two browsers sync their notes. */
async function check(address: string): Promise<void> {
  const open = async (): Promise<Page> => (await here.device()).open(address);
  const [first, second] = await Promise.all([open(), open()]);
  await write(first, "from the first browser");
  await first.reload();
  await shows(first, "from the first browser");

  const login = await here.server.account(`account-${(accountsCount += 1)}`);
  await Promise.all([first, second].map((page) => signInOn(page, login)));
  await shows(second, "from the first browser");
  await write(second, "from the second browser");
  await shows(first, "from the second browser");
}

async function signInOn(page: Page, login: string): Promise<void> {
  await page.waitForFunction(() => "signIn" in globalThis);
  await page.evaluate((account) => globalThis.signIn(...account), [login, PASSWORD] as const);
}

const GUIDE = "docs/guide/browser.md";
const VITE = "vite/bin/vite.js";
const VITE_7 = "vite-7/bin/vite.js";
/** Arguments that make Vite choose a free port. */
const SERVE = ["--host", "127.0.0.1", "--port", "0"];

test("Vite 8, in development and built, with the app of the guide", async () => {
  const [body] = await codeBlocks(GUIDE, "html");
  const [, main] = await codeBlocks(GUIDE, "ts");
  assert.ok(body !== undefined && main !== undefined);
  const { "notes.js": notes } = await exampleFiles();
  const made = await app("vite", {
    "index.html": `${HEAD}${body}</html>`,
    "src/main.ts": main,
    "src/notes.js": notes,
  });
  await check(await made.serve(VITE, ...SERVE));
  await made.run(VITE, "build");
  await check(await made.serveFolder("dist"));
});

test("the worker and the wasm under the names that the package gives them", async () => {
  const files = await exampleFiles();
  const named = `import worker from "@warren/client/worker?url";
import wasm from "@warren/client/wasm?url";
${files["notes.js"].replace('track: ["note"],', '$& assets: { worker, wasm },')}`;
  const page = pageWith("/main.js");
  const made = await app("named", { ...files, "notes.js": named, "index.html": page });
  await check(await made.serve(VITE, ...SERVE));
  await made.run(VITE, "build");
  await check(await made.serveFolder("dist"));
});

test("Vite 7, in development after its error names the remedy, and built", async () => {
  const files = { ...(await exampleFiles()), "index.html": pageWith("/main.js") };
  const made = await app("vite-7", files);
  const device = await here.device();
  device.expectErrors(/404|optimizeDeps/);
  const page = await device.context.newPage();
  const thrown = page.waitForEvent("pageerror");
  await page.goto(await made.serve(VITE_7, ...SERVE));
  const { message } = await thrown;
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

/** Parcel looks for a free port, at 1234 first. */
const PARCEL = "parcel/lib/bin.js";
const REACT_MAIN = `import { createRoot } from "react-dom/client";
import { Notes } from "./component";
createRoot(document.body.appendChild(document.createElement("main"))).render(<Notes />);
`;

// Parcel reads the package's `main` and `alias`, and no `exports`.
test("Parcel 2, in development with React, and built", async () => {
  const files = {
    ...(await exampleFiles()),
    "index.html": pageWith("main.js"),
    "react/component.tsx": await component(),
    "react/main.jsx": REACT_MAIN,
    "react/index.html": pageWith("main.jsx"),
    // Parcel takes the folder with the lock file, which npm would write, for the app's.
    "package-lock.json": "{}",
    // Parcel compiles JSX for the version of React that the app asks for.
    "package.json": JSON.stringify({ private: true, dependencies: { react: "^19.0.0" } }),
  };
  const made = await app("parcel", files, ["react", "react-dom"]);
  await check(await made.serve(PARCEL, "react/index.html"));
  for (const folder of ["react", "."]) {
    const built = join(folder, "built");
    await made.run(PARCEL, "build", join(folder, "index.html"), "--dist-dir", built);
    await check(await made.serveFolder(built));
  }
});

test("esbuild: the error names the two missing files at once, and with them it runs", async () => {
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
  const thrown = page.waitForEvent("pageerror");
  await page.goto(address);
  const { message } = await thrown;
  assert.ok(message.includes(`else at ${address}worker.js: put worker.js and replica_bg.wasm`));

  await made.run("bash", "-c", copy);
  await check(address);
});

/** A policy that allows no inline script, and so no import map. */
const STRICT = `<meta http-equiv="Content-Security-Policy"
  content="script-src 'self' 'wasm-unsafe-eval'">`;

test("no bundler, with an import map and without one", async () => {
  const files = await exampleFiles();
  const [scripts] = await readme("html");
  const [, copy] = await readme("sh");
  assert.ok(scripts !== undefined && copy !== undefined);
  const made = await app("no-bundler", {
    "public/index.html": `${HEAD}<ul></ul>${scripts}</html>`,
    "public/main.js": files["main.js"],
    "public/notes.js": files["notes.js"],
  });
  await made.run("bash", "-c", copy);
  const address = await made.serveFolder("public");
  await check(address);

  const byAddress = files["notes.js"].replace('"@warren/client"', '"/warren/index.js"');
  await writeFile(join(made.folder, "public/index.html"), pageWith("/main.js", STRICT));
  await writeFile(join(made.folder, "public/notes.js"), byAddress);
  await check(address);
});

/** A type that no row can have is refused as an interface, too. */
const REFUSED = `import type { WarrenDatabase } from "@warren/client";
interface DatedRow { day: Date }
// @ts-expect-error
export const read = (db: WarrenDatabase) => db.sql<DatedRow>\`SELECT day FROM item\`;
`;

test("Next.js 16, in development and built, and the types of the README", async () => {
  const [typed] = await readme("tsx");
  const [example] = await readme("ts");
  assert.ok(typed !== undefined && example !== undefined);
  const layout = `export default ({ children }) =>
  <html lang="en"><head><link rel="icon" href="data:," /></head><body>{children}</body></html>;`;
  const page = 'import { Notes } from "./notes"; export default () => <Notes />;';
  const strict = { strict: true, noEmit: true, skipLibCheck: false, types: [] };
  const library = { lib: ["es2023", "esnext.disposable", "dom", "dom.iterable"], target: "es2023" };
  const modules = { module: "esnext", moduleResolution: "bundler", jsx: "react-jsx" };
  const files = {
    "types/notes.tsx": typed,
    "types/notes.ts": example,
    "types/refused.ts": REFUSED,
    "types/tsconfig.json": JSON.stringify({
      compilerOptions: { ...strict, ...library, ...modules },
      include: ["."],
    }),
    "component.tsx": await component(),
    "app/layout.jsx": layout,
    "app/page.jsx": page,
  };
  const made = await app("next", files, "all");
  await made.run(resolve("web/node_modules/.bin/tsc"), "-p", "types");
  const plain = ["--jsx=preserve", "--outfile=app/notes.jsx", "component.tsx"];
  await made.run("esbuild/bin/esbuild", ...plain);
  await check(await made.serve("next/dist/bin/next", "dev", "--port", "0"));
  await made.run("next/dist/bin/next", "build");
  await check(await made.serve("next/dist/bin/next", "start", "--port", "0"));
});

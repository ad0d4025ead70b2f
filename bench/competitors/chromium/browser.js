// The lab's driver of libraries for browsers: `browser.js LIBRARY CLIENT`, where LIBRARY is a
// module next to this one, and CLIENT the folder of `@warren/client` as `cargo xtask web` builds
// it. It starts a Chromium with its own profile next to the database. The measured work runs
// there, in a worker, or in the page for a library that a page calls. The plan and the answer are
// Warren's Format 12.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { say } from '../node/plan.js';

const [library, client] = process.argv.slice(2);
const here = import.meta.dirname;
const SQLITE = join(here, 'node_modules/@sqlite.org/sqlite-wasm');
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };
// These headers isolate the page, so that the browser does not make its clocks coarse.
const HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
const ARGUMENTS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-gpu',
  '--disable-quic',
  '--disable-sync',
  '--no-first-run',
  '--no-sandbox',
];

// Finds the browser like `.ci/setup.sh`, or else the one that Playwright has installed.
function findBrowser() {
  const names = ['chromium', 'google-chrome', 'chromium-browser'];
  const name = names.find((name) => spawnSync(name, ['--version']).status === 0);
  if (name) return spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim();
  const installed = chromium.executablePath();
  if (!existsSync(installed)) throw new Error('no Chromium is installed');
  return installed;
}

function fileOf(path, database) {
  const [, folder, ...rest] = path.split('/');
  switch (folder) {
    case 'database':
      return database;
    case 'node':
      return join(here, '../node', ...rest);
    case 'sqlite-wasm':
      return join(SQLITE, 'dist', ...rest);
    case 'warren':
      return join(client, ...rest);
    default:
      return join(here, folder);
  }
}

// Only this program's own browser connects, so requests need no checks.
function serve(database) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname;
    if (path === '/') {
      response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/html' });
      response.end('<!doctype html><title>Warren</title><link rel="icon" href="data:,">');
      return;
    }
    const file = fileOf(path, database);
    if (!existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    const type = TYPES[extname(file)] ?? 'application/octet-stream';
    response.writeHead(200, { ...HEADERS, 'Content-Type': type });
    response.end(readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function inBrowser(plan) {
  const profile = mkdtempSync(plan === undefined ? join(tmpdir(), 'warren-') : `${plan.database}-`);
  const server = await serve(plan?.database);
  let context;
  try {
    const options = { executablePath: findBrowser(), args: ARGUMENTS };
    context = await chromium.launchPersistentContext(profile, options);
    const page = context.pages()[0];
    page.on('console', (message) => console.error(message.text()));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const run = async ([library, plan]) => {
      const { run } = await import('/page.js');
      return run(library, plan);
    };
    const answer = await page.evaluate(run, [library, plan ?? null]);
    if (answer.error) throw new Error(answer.error);
    return { ...answer, runtime: `Chromium ${context.browser().version()}` };
  } finally {
    await context?.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

await say(async (plan) => {
  if (plan !== undefined && !existsSync(plan.database)) {
    throw new Error(`${plan.database}: there is no such file`);
  }
  if (library.startsWith('warren') && !existsSync(join(client, 'index.js'))) {
    throw new Error('@warren/client is not built: run `cargo xtask web`');
  }
  const folder = library.startsWith('warren') ? dirname(client) : SQLITE;
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { ...(await inBrowser(plan)), version };
});

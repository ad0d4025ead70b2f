// Starts Actual Budget's sync server as docs/reference/formats/7-competitor-drivers.md describes:
// a plan comes on standard input, the address goes to standard output, and the server ends when
// standard input does.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const readline = require('node:readline');

const START_MS_MAX = 50_000;
const DOES =
  'a SQLite file per budget, opened and closed in each request, rollback journal and synchronous ' +
  'FULL: flushed before the answer; not encrypted by the server; INSERT OR IGNORE per message; ' +
  'a Merkle trie kept as one JSON document, read, changed, written back and sent in each answer';

const packages = path.join(__dirname, 'node_modules');
const folder = path.join(packages, '@actual-app', 'sync-server');

function about() {
  const version = (name) =>
    JSON.parse(fs.readFileSync(path.join(packages, name, 'package.json'), 'utf8')).version;
  const sqlite = new (require('better-sqlite3'))(':memory:')
    .prepare('SELECT sqlite_version() AS version')
    .get().version;
  return {
    server: 'Actual',
    version: `@actual-app/sync-server ${version('@actual-app/sync-server')}, SQLite ${sqlite}`,
    runtime: `Node ${process.versions.node}`,
    does: DOES,
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const listener = net.createServer().on('error', reject);
    listener.listen(0, '127.0.0.1', () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });
}

function start(plan, port) {
  const files = path.resolve(plan.folder);
  const environment = {
    ...process.env,
    NODE_ENV: 'production',
    ACTUAL_PORT: String(port),
    ACTUAL_HOSTNAME: '127.0.0.1',
    // Actual's rate limit is 500 requests a minute per address, so the load generator sends
    // another address with each request.
    ACTUAL_TRUSTED_PROXIES: '127.0.0.1/32',
    ACTUAL_DATA_DIR: files,
    ACTUAL_SERVER_FILES: path.join(files, 'server-files'),
    ACTUAL_USER_FILES: path.join(files, 'user-files'),
  };
  const main = path.join(folder, 'build', 'bin', 'actual-server.js');
  // Standard output is reserved for the one line of this program.
  return spawn(process.execPath, [main], {
    cwd: files,
    env: environment,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function answers(server, address) {
  const end = Date.now() + START_MS_MAX;
  while (server.exitCode === null && Date.now() < end) {
    try {
      const answer = await fetch(`${address}/health`);
      if (answer.ok) return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`the server does not answer (status ${server.exitCode})`);
}

async function main() {
  const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
  if (process.argv[2] === 'about') {
    say(about());
    return;
  }
  const lines = readline.createInterface({ input: process.stdin });
  const ended = new Promise((resolve) => lines.once('close', resolve));
  const plan = JSON.parse(await new Promise((resolve) => lines.once('line', resolve)));
  if (plan.workers !== 1 || plan.journal_mode || plan.synchronous) {
    throw new Error('it has one process, and its own settings');
  }
  const port = await freePort();
  const server = start(plan, port);
  try {
    const address = `http://127.0.0.1:${port}`;
    await answers(server, address);
    say({ address, settings: {} });
    await ended;
  } finally {
    server.kill('SIGKILL');
  }
}

main().catch((error) => {
  process.stdout.write(`${JSON.stringify({ error: error.message })}\n`);
  process.exitCode = 1;
});

// The driver of better-sqlite3. The plan and the answer are Warren's Format 7.
//
// The library is synchronous: there is one caller, and the plan's concurrency does not apply.
// Account numbers are JavaScript numbers, the library's default, not BigInt.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Database from 'better-sqlite3';

const { version } = createRequire(import.meta.url)('better-sqlite3/package.json');

function about() {
  const db = new Database(':memory:');
  const sqlite = db.prepare('SELECT sqlite_version()').pluck().get();
  db.close();
  const runtime = `node ${process.version}`;
  return { driver: 'better-sqlite3', version, sqlite, runtime, concurrent: false };
}

// Returns the account numbers in the order credit, debit, credit, …
function readPairs(path) {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  const bytes = buffer.slice(byteOffset, byteOffset + byteLength);
  const accounts = Float64Array.from(new BigInt64Array(bytes), Number);
  if (accounts.length === 0 || accounts.length % 2 !== 0) throw new Error(`${path}: no pairs`);
  return accounts;
}

// Returns a function that runs the request of a number: it reads the balance, then runs the
// transaction.
function prepare(db, accounts, reads) {
  const credit = db.prepare('UPDATE account SET balance = balance + 1 WHERE id = ?');
  const debit = db.prepare('UPDATE account SET balance = balance - 1 WHERE id = ?');
  const balance = db.prepare('SELECT balance FROM account WHERE id = ?').pluck();
  const { immediate: transfer } = db.transaction((from, to) => {
    credit.run(from);
    debit.run(to);
  });
  return (number) => {
    const first = (2 * number) % accounts.length;
    for (let read = 0; read < reads; read++) balance.get(accounts[first]);
    transfer(accounts[first], accounts[first + 1]);
  };
}

// Returns the waits within the measured time, in milliseconds, sorted.
function measure(run, warmupSeconds, seconds) {
  const start = performance.now() + warmupSeconds * 1000;
  const end = start + seconds * 1000;
  const waits = [];
  let asked = performance.now();
  for (let number = 0; asked < end; number++) {
    run(number);
    const answered = performance.now();
    if (answered >= start && answered < end) waits.push(answered - asked);
    asked = answered;
  }
  if (waits.length === 0) throw new Error(`no transaction ended in ${seconds} s`);
  return Float64Array.from(waits).sort();
}

function answer(plan) {
  const db = new Database(plan.database, { fileMustExist: true });
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${plan.synchronous}`);
  db.pragma(`cache_size = ${-plan.cache_kib}`);
  const read = (name) => db.pragma(name, { simple: true });
  const settings = {
    journal_mode: read('journal_mode'),
    synchronous: read('synchronous'),
    cache_size: read('cache_size'),
  };
  const run = prepare(db, readPairs(plan.pairs), plan.reads);
  const waits = measure(run, plan.warmup_seconds, plan.seconds);
  db.close();
  // The percentile is the smallest wait that this percentage of all waits did not exceed.
  const at = (percent) => waits[Math.ceil((waits.length * percent) / 100) - 1] * 1000;
  return {
    ...about(),
    transactions: waits.length,
    seconds: plan.seconds,
    latency_us: { p50: at(50), p95: at(95), p99: at(99), max: at(100) },
    settings,
  };
}

function main() {
  try {
    if (process.argv[2] === 'about') return about();
    return answer(JSON.parse(readFileSync(0, 'utf8')));
  } catch (error) {
    process.exitCode = 1;
    return { error: String(error) };
  }
}

process.stdout.write(`${JSON.stringify(main())}\n`);

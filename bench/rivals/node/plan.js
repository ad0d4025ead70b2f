// What the lab's drivers for Node share: the plan, what its statements bind, the loop, the answer.
// Plan and answer are Warren's Format 12.
//
// A driver calls `drive` with its library: `driver` and `version` name it, and `open(path)`
// promises a connection, which has
// - `query(sql)`: the first column of all rows,
// - `prepare(sql)`: a function that takes an array of values to bind, runs the statement, and
//   fetches all rows if it gives any,
// - `transaction(work)`: a function that does the work between BEGIN IMMEDIATE and COMMIT,
// - `close()`.

import { existsSync, readFileSync } from 'node:fs';

const CIPHERS = ['aegis', 'aes128cbc', 'aes256cbc', 'ascon128', 'chacha20', 'rc4', 'sqlcipher'];
// What SQLite3 Multiple Ciphers takes a raw key after: "raw:".
const RAW_KEY = '7261773a';
const BODY_SEED = 1;

class Random {
  constructor(seed) {
    this.state = seed;
  }

  number() {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return this.state >>> 8;
  }
}

// What statements bind: `begin` comes before each operation, and `byName` has a function for each
// name that gives a value; `undefined` if there is none.
function draws(plan) {
  const random = new Random(plan.seed);
  const bytes = new Random(BODY_SEED);
  const body = Buffer.from(Array.from({ length: plan.body_bytes }, () => bytes.number() % 256));
  const added = [];
  let newest = plan.rows;
  // Of one operation.
  let fresh;
  let taken;
  const byName = {
    new: () => (fresh ??= added[added.push(++newest) - 1]),
    last: () => (taken ??= added.pop()),
    row: () => 1 + (random.number() % plan.rows),
    body: () => body,
  };
  for (const [name, values] of Object.entries(plan.samples)) {
    byName[name] = () => values[random.number() % values.length];
  }
  const begin = () => {
    fresh = undefined;
    taken = undefined;
  };
  return { begin, byName };
}

// Gives a function that runs the statement, and is false if there is nothing to bind.
function prepare(connection, { sql, bind }, byName) {
  const run = connection.prepare(sql);
  const next = bind.map((name) => {
    if (!Object.hasOwn(byName, name)) throw new Error(`nothing is called ${name}: ${sql}`);
    return byName[name];
  });
  return () => {
    const values = [];
    for (const draw of next) {
      const value = draw();
      if (value === undefined) return false;
      values.push(value);
    }
    run(values);
    return true;
  };
}

function prepareAll(connection, plan) {
  const { begin, byName } = draws(plan);
  const operations = {};
  for (const [name, statements] of Object.entries(plan.operations)) {
    const runs = statements.map((statement) => prepare(connection, statement, byName));
    operations[name] = () => {
      begin();
      return runs.every((run) => run());
    };
  }
  return operations;
}

function measure(connection, step, operations) {
  const cycle = step.cycle.map((name) => {
    if (!Object.hasOwn(operations, name)) throw new Error(`no operation is called ${name}`);
    return operations[name];
  });
  let done = 0;
  let ended = false;
  const work = () => {
    for (let count = 0; count < step.transaction && !ended; count++) {
      if (cycle[done % cycle.length]()) done++;
      else ended = true;
    }
  };
  const transaction = step.transaction === 1 ? work : connection.transaction(work);

  const start = performance.now() + step.warmup_seconds * 1000;
  while (!ended && performance.now() < start) transaction();
  const before = done;
  const cpu = process.cpuUsage();
  const begin = performance.now();
  let slowest = 0;
  let at = begin;
  while (!ended && at - begin < step.seconds * 1000) {
    transaction();
    const now = performance.now();
    slowest = Math.max(slowest, now - at);
    at = now;
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    name: step.name,
    operations: done - before,
    seconds: (at - begin) / 1000,
    cpu_seconds: (user + system) / 1e6,
    slowest_us: slowest * 1000,
  };
}

function hasCipher(connection, cipher) {
  try {
    return connection.query(`PRAGMA cipher = '${cipher}'`)[0] === cipher;
  } catch {
    return false;
  }
}

async function about(library) {
  const connection = await library.open(':memory:');
  const who = {
    driver: library.driver,
    version: library.version,
    sqlite: connection.query('SELECT sqlite_version()')[0],
    runtime: `node ${process.version}`,
    ciphers: CIPHERS.filter((cipher) => hasCipher(connection, cipher)),
    compile_options: connection.query('PRAGMA compile_options').sort(),
  };
  connection.close();
  return who;
}

function configure(connection, plan) {
  if (plan.cipher !== null) {
    if (!hasCipher(connection, plan.cipher)) throw new Error(`it has no ${plan.cipher}`);
    connection.query(`PRAGMA hexkey = '${RAW_KEY}${plan.key}'`);
  }
  for (const [name, value] of plan.settings) connection.query(`PRAGMA ${name} = ${value}`);
}

async function answer(library, plan) {
  if (!existsSync(plan.database)) throw new Error(`${plan.database}: there is no such file`);
  const connection = await library.open(plan.database);
  configure(connection, plan);
  const operations = prepareAll(connection, plan);
  const steps = plan.steps.map((step) => measure(connection, step, operations));
  for (const sql of plan.clean) connection.query(sql);
  const settings = {};
  for (const [name] of plan.settings) {
    settings[name] = connection.query(`PRAGMA ${name}`)[0] ?? null;
  }
  connection.close();
  return { ...(await about(library)), settings, steps };
}

// The whole program of a driver.
export async function drive(library) {
  let line;
  try {
    const isAbout = process.argv[2] === 'about';
    line = isAbout
      ? await about(library)
      : await answer(library, JSON.parse(readFileSync(0, 'utf8')));
  } catch (error) {
    process.exitCode = 1;
    line = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

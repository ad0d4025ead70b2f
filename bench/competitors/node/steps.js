// Carries out a plan of the lab in JavaScript, in Node and in browsers: the values that statements
// bind, the loop, the answer. The plan and the answer are Warren's Format 12.
//
// A library has
// - `driver`, `version` and `runtime`, which name it,
// - `bytes(numbers)`: these bytes in the type that the library binds,
// - `cpuMs()`: the processor time of the process so far, or `null` if it cannot be known,
// - `open(path)`, which promises a connection. A connection has
//   - `query(sql)`: the first column of all rows,
//   - `prepare(sql)`: a function that takes an array of values to bind, runs the statement, and
//     fetches all rows if it gives any,
//   - `transaction(work)`: a function that does the work between BEGIN IMMEDIATE and COMMIT,
//   - `settled()`, if the work runs elsewhere: promises that the last statement has finished,
//   - `close()`.
// Each of these functions may return a promise.

const CIPHERS = ['aegis', 'aes128cbc', 'aes256cbc', 'ascon128', 'chacha20', 'rc4', 'sqlcipher'];
// SQLite3 Multiple Ciphers expects a raw key after this prefix: "raw:".
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

// Creates the values that statements bind: `begin` comes before each operation, and `byName` has a
// function for each name that returns a value, or `undefined` if none is left.
function draws(plan, toBytes) {
  const random = new Random(plan.seed);
  const bytes = new Random(BODY_SEED);
  const body = toBytes(Array.from({ length: plan.body_bytes }, () => bytes.number() % 256));
  const added = [];
  let newest = plan.rows;
  // These two are the values of one operation.
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

// Returns a function that runs the statement, or returns false if there is no value to bind.
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

function prepareAll(connection, plan, toBytes) {
  const { begin, byName } = draws(plan, toBytes);
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

async function measure(connection, step, operations, cpuMs) {
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
  const { settled } = connection;

  const start = performance.now() + step.warmup_seconds * 1000;
  while (!ended && performance.now() < start) {
    transaction();
    if (settled) await settled();
  }
  const before = done;
  const cpu = cpuMs();
  const begin = performance.now();
  let slowest = 0;
  let at = begin;
  while (!ended && at - begin < step.seconds * 1000) {
    transaction();
    if (settled) await settled();
    const now = performance.now();
    slowest = Math.max(slowest, now - at);
    at = now;
  }
  return {
    name: step.name,
    operations: done - before,
    seconds: (at - begin) / 1000,
    cpu_seconds: cpu === null ? null : (cpuMs() - cpu) / 1000,
    slowest_us: slowest * 1000,
  };
}

async function hasCipher(connection, cipher) {
  try {
    const [chosen] = await connection.query(`PRAGMA cipher = '${cipher}'`);
    return chosen === cipher;
  } catch {
    return false;
  }
}

export async function about(library) {
  const connection = await library.open(':memory:');
  const ciphers = [];
  for (const cipher of CIPHERS) {
    if (await hasCipher(connection, cipher)) ciphers.push(cipher);
  }
  const [sqlite] = await connection.query('SELECT sqlite_version()');
  const options = await connection.query('PRAGMA compile_options');
  await connection.close();
  return {
    driver: library.driver,
    version: library.version,
    sqlite,
    runtime: library.runtime,
    ciphers,
    compile_options: options.sort(),
  };
}

async function configure(connection, plan) {
  if (plan.cipher !== null) {
    if (!(await hasCipher(connection, plan.cipher))) throw new Error(`it has no ${plan.cipher}`);
    await connection.query(`PRAGMA hexkey = '${RAW_KEY}${plan.key}'`);
  }
  for (const [name, value] of plan.settings) await connection.query(`PRAGMA ${name} = ${value}`);
}

export async function answer(library, plan) {
  const connection = await library.open(plan.database);
  await configure(connection, plan);
  const operations = prepareAll(connection, plan, library.bytes);
  const steps = [];
  for (const step of plan.steps) {
    steps.push(await measure(connection, step, operations, library.cpuMs));
  }
  for (const sql of plan.clean) await connection.query(sql);
  const settings = {};
  for (const [name] of plan.settings) {
    const [value] = await connection.query(`PRAGMA ${name}`);
    settings[name] = value ?? null;
  }
  await connection.close();
  return { ...(await about(library)), settings, steps };
}

// Code that the lab's drivers for Node share: the program around `steps.js`. A driver calls
// `drive` with its library: `driver`, `version` and `open(path)`.

import { existsSync, readFileSync } from 'node:fs';
import { about, answer } from './steps.js';

const node = {
  runtime: `node ${process.version}`,
  bytes: (numbers) => Buffer.from(numbers),
  cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
};

async function carryOut(library, plan) {
  if (!existsSync(plan.database)) throw new Error(`${plan.database}: there is no such file`);
  return answer(library, plan);
}

// Runs the whole program of a driver.
export async function drive(named) {
  const library = { ...node, ...named };
  await say((plan) => (plan === undefined ? about(library) : carryOut(library, plan)));
}

// Calls the work with the plan, or with `undefined` if the argument is `about`, and prints the
// result as JSON.
export async function say(work) {
  let line;
  try {
    const isAbout = process.argv.at(-1) === 'about';
    line = await work(isAbout ? undefined : JSON.parse(readFileSync(0, 'utf8')));
  } catch (error) {
    process.exitCode = 1;
    line = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

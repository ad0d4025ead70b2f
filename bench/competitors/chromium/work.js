// What page and worker share: a library by its name, and what it answers.

import { about, answer } from '/node/steps.js';

const browser = {
  // The driver knows both.
  version: '',
  runtime: '',
  bytes: (numbers) => Uint8Array.from(numbers),
  // Of a process that also does other things for the page.
  cpuMs: () => null,
};

export async function work(name, plan) {
  try {
    const { driver, open } = await import(`./${name}.js`);
    const library = { ...browser, driver, open };
    return plan === null ? await about(library) : await answer(library, plan);
  } catch (error) {
    return { error: String(error) };
  }
}

// The plan's file, as bytes; `undefined` for a database in memory.
export async function fetchFile(path) {
  if (path === ':memory:') return undefined;
  const response = await fetch('/database');
  if (!response.ok) throw new Error(`the database: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

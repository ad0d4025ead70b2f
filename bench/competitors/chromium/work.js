// Code that page and worker share: it loads a library by its name and returns its answer.

import { about, answer } from '/node/steps.js';

const browser = {
  // The driver `browser.js` fills in both.
  version: '',
  runtime: '',
  bytes: (numbers) => Uint8Array.from(numbers),
  // The processor time is unknown, because the process also does other things for the page.
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

// Returns the plan's file as bytes, or `undefined` for a database in memory.
export async function fetchFile(path) {
  if (path === ':memory:') return undefined;
  const response = await fetch('/database');
  if (!response.ok) throw new Error(`the database: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

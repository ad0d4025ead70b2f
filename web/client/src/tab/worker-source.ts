/**
 * Starts workers, and says what to do where their code cannot be loaded.
 *
 * Which address a bundler gives the worker nobody can ask here: written down a second time, it
 * would make bundlers put a second file there. What is said in an error is where the file is
 * without a bundler's help, beside the script that this module is in. That script is the bundle of
 * `index.ts`, and the worker is the bundle of `worker.ts` beside it, in whatever folder this is.
 */
import type { AssetAddresses } from "../api.js";

/** How a tab comes to its workers. */
export interface WorkerSource {
  /** Throws where the browser refuses it: a worker comes from the page's own origin. */
  start(): Worker;
  /** Where its code is looked for, and what to do if it is not there. */
  describe(): string;
}

export function workerSource(assets: AssetAddresses | undefined): WorkerSource {
  const given = assets?.worker === undefined ? undefined : here(assets.worker);
  return {
    start: () =>
      given === undefined
        ? // Bundlers look for this text, and the type has to be a literal.
          new Worker(new URL("./worker.js", import.meta.url), { type: "module" })
        : new Worker(given, { type: "module" }),
    describe: () => describe(given, new Error().stack),
  };
}

/** An address as a page means it. */
export function here(address: string | URL): string {
  return new URL(address, location.href).href;
}

const FILES = "worker.js and replica_bg.wasm from @warren/client/dist";

/** `stack` is that of an error that this script has made. */
function describe(given: string | undefined, stack: string | undefined): string {
  if (given !== undefined) {
    const expected = `its script is expected at ${given}`;
    return `${expected}: put ${FILES} there, and set both addresses in \`assets\``;
  }
  const script = /[a-z][a-z+.-]*:\/\/[^\s()]+?(?=(?::\d+){1,2}\)?$)/m.exec(stack ?? "")?.[0];
  const place =
    script === undefined
      ? "worker.js next to the client's script"
      : new URL("worker.js", script).href;
  const where = `its script is expected where the bundler put it, else at ${place}`;
  return script?.includes("/.vite/deps/") === true
    ? `${where}: add \`optimizeDeps: { exclude: ["@warren/client"] }\` to Vite's configuration`
    : `${where}: put ${FILES} there, or set their addresses in \`assets\``;
}

/**
 * Starts workers, and explains what to do if their code cannot be loaded.
 *
 * This module cannot find out which address a bundler gives the worker: written a second time, the
 * address would make bundlers emit a second file. So an error names the place of the file without
 * a bundler: the folder of the script that contains this module. That script is the bundle of
 * `index.ts`, and the bundle of `worker.ts` is in the same folder, wherever that is.
 */
import type { AssetAddresses } from "../api.js";

/** Starts the tab's workers. */
export interface WorkerSource {
  /**
   * Starts a worker. Throws if the browser refuses: a worker must come from the page's own origin.
   */
  start(): Worker;
  /** Describes where the worker's code is expected, and what to do if it is missing. */
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

/** Resolves an address against the page's. */
export function here(address: string | URL): string {
  return new URL(address, location.href).href;
}

const FILES = "worker.js and replica_bg.wasm from @warren/client/dist";

/** Describes the expected place; `stack` is that of an error created in this script. */
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

/** The worker's entry: what its tab says goes to its `ownership`. */
import * as code from "warren-replica";
import { enginesOf } from "./engines.js";
import { lifeLock, type FromWorker, type Start, type ToWorker } from "./messages.js";
import { ownership, type Ownership } from "./ownership.js";

declare const self: DedicatedWorkerGlobalScope;

const post = (message: FromWorker, transfer: readonly ArrayBuffer[] = []): void => {
  self.postMessage(message, [...transfer]);
};
let mine: Ownership | undefined;

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.kind) {
    case "start":
      void begin(message);
      break;
    case "call":
    case "cancel":
      mine?.take(message);
      break;
    case "key":
      mine?.rekey(message.key);
      break;
    case "close":
      void mine?.close().then(() => post({ kind: "closed" }));
      break;
  }
};
self.addEventListener("online", () => mine?.online());

async function begin(start: Start): Promise<void> {
  const locks = start.hasLocks ? navigator.locks : undefined;
  // Written out as bundlers look for it.
  const wasm = start.wasm ?? new URL("./replica_bg.wasm", import.meta.url).href;
  mine = ownership({ start, engines: enginesOf(code, wasm), locks, post });
  if (locks !== undefined) {
    // Held until this worker ends: so its tab notices that.
    await new Promise<void>((held) => {
      const forever = new Promise<never>(() => undefined);
      void locks.request(lifeLock(start.name, start.worker), () => {
        held();
        return forever;
      });
    });
  }
  post({ kind: "ready" });
}

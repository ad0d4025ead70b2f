/** The worker's entry point: passes the tab's messages to its `LeaderCandidate`. */
import * as code from "warren-replica";
import { enginesOf } from "./worker/engine-loader.js";
import {
  livenessLock,
  type WorkerEvent,
  type WorkerStart,
  type WorkerMessage,
} from "./shared/tab-messages.js";
import { LeaderCandidate } from "./worker/leader-election.js";

declare const self: DedicatedWorkerGlobalScope;

const post = (message: WorkerEvent, transfer: readonly ArrayBuffer[] = []): void => {
  self.postMessage(message, [...transfer]);
};
let mine: LeaderCandidate | undefined;

self.onmessage = (event: MessageEvent<WorkerMessage>) => {
  const message = event.data;
  switch (message.kind) {
    case "start":
      void startWorker(message);
      break;
    case "call":
    case "cancel":
      mine?.handleCall(message);
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

async function startWorker(start: WorkerStart): Promise<void> {
  const locks = start.hasLocks ? navigator.locks : undefined;
  // Written out in full because bundlers look for this text.
  const wasm = start.wasm ?? new URL("./replica_bg.wasm", import.meta.url).href;
  mine = new LeaderCandidate({ start, engines: enginesOf(code, wasm), locks, post });
  if (locks !== undefined) {
    // Held until this worker ends, so that its tab notices the end.
    await new Promise<void>((held) => {
      const forever = new Promise<never>(() => undefined);
      void locks.request(livenessLock(start.name, start.worker), () => {
        held();
        return forever;
      });
    });
  }
  post({ kind: "ready" });
}

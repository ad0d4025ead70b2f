/**
 * The parts of a browser that the client needs, in one process: locks, and workers that can be
 * killed. Channels are Node's own.
 */
import { systemTimeSource, type TimeSource } from "../../client/src/shared/time-source.js";
import type { EngineModule, ReplicaHandle } from "../../client/src/shared/wasm-engine.js";
import { LeaderCandidate } from "../../client/src/worker/leader-election.js";
import {
  livenessLock,
  type WorkerStart,
  type WorkerMessage,
} from "../../client/src/shared/tab-messages.js";

interface LockWaiter {
  readonly agent: symbol;
  readonly name: string;
  grant: () => void;
}

/** The Web Locks of an origin, for several agents. */
export class FakeLocks {
  readonly #held = new Map<string, symbol>();
  #waiting: LockWaiter[] = [];

  /** Returns the locks as seen by one agent. */
  agent(agent: symbol): LockManager {
    const request = (name: string, first: unknown, second?: unknown): Promise<unknown> => {
      const work = (second ?? first) as () => unknown;
      const signal = second === undefined ? undefined : (first as LockOptions).signal;
      return new Promise((resolve, reject) => {
        const waiting: LockWaiter = {
          agent,
          name,
          grant: () => {
            this.#held.set(name, agent);
            void Promise.resolve()
              .then(work)
              .then(resolve, reject)
              .finally(() => this.#free(name, agent));
          },
        };
        this.#waiting.push(waiting);
        signal?.addEventListener("abort", () => {
          if (this.#waiting.includes(waiting)) {
            this.#waiting = this.#waiting.filter((one) => one !== waiting);
            reject(new DOMException("aborted", "AbortError"));
          }
        });
        this.#grant();
      });
    };
    const query = (): Promise<LockManagerSnapshot> =>
      Promise.resolve({ held: [...this.#held.keys()].map((name) => ({ name })), pending: [] });
    return { request, query } as unknown as LockManager;
  }

  /** Releases the locks that the agent holds, and drops its requests. */
  kill(agent: symbol): void {
    this.#waiting = this.#waiting.filter((one) => one.agent !== agent);
    [...this.#held].filter(([, of]) => of === agent).forEach(([name]) => this.#free(name, agent));
  }

  #free(name: string, agent: symbol): void {
    if (this.#held.get(name) === agent) {
      this.#held.delete(name);
      this.#grant();
    }
  }

  #grant(): void {
    for (const one of [...this.#waiting]) {
      if (!this.#held.has(one.name)) {
        this.#waiting = this.#waiting.filter((other) => other !== one);
        one.grant();
      }
    }
  }
}

/** A clock whose timers do not keep the process alive when a killed worker still waits for them. */
const CLOCK: TimeSource = {
  ...systemTimeSource,
  after(ms, work) {
    const timer = setTimeout(work, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The workers that were started, newest last. */
export const workers: FakeWorker[] = [];

/** A worker in the tab's thread. Once killed, it neither sends nor receives messages. */
export class FakeWorker {
  static locks = new FakeLocks();
  static engine: () => EngineModule;
  onmessage: ((event: { data: unknown }) => void) | undefined;
  onerror: ((event: { message: string; preventDefault(): void }) => void) | undefined;
  readonly agent = Symbol("worker");
  tab = "";
  #isDead = false;
  readonly #channels: BroadcastChannel[] = [];
  readonly #replicas: ReplicaHandle[] = [];
  #mine: LeaderCandidate | undefined;

  constructor() {
    workers.push(this);
  }

  postMessage(message: WorkerMessage): void {
    queueMicrotask(() => {
      if (!this.#isDead) {
        this.#hear(structuredClone(message));
      } else if (message.kind === "close") {
        this.onmessage?.({ data: { kind: "closed" } });
      }
    });
  }

  #say(message: unknown, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#isDead) {
      const data: unknown = structuredClone(message, { transfer: [...transfer] });
      queueMicrotask(() => this.onmessage?.({ data }));
    }
  }

  #hear(message: WorkerMessage): void {
    switch (message.kind) {
      case "start":
        this.#start(message);
        break;
      case "key":
        this.#mine?.rekey(message.key);
        break;
      case "close":
        void this.#mine?.close().then(() => this.#say({ kind: "closed" }));
        break;
      case "call":
      case "cancel":
        this.#mine?.handleCall(message);
    }
  }

  #start(start: WorkerStart): void {
    this.tab = start.tab;
    const locks = FakeWorker.locks.agent(this.agent);
    const load = (): Promise<EngineModule> => Promise.resolve(this.#engine(FakeWorker.engine()));
    this.#mine = new LeaderCandidate({
      start,
      locks: start.hasLocks ? locks : undefined,
      engines: { load, preload: () => Promise.resolve() },
      post: (message, transfer) => this.#say(message, transfer),
      channel: (name) => this.#channel(name),
      clock: CLOCK,
    });
    void locks.request(livenessLock(start.name, start.worker), () => new Promise(() => undefined));
    this.#say({ kind: "ready" });
  }

  #channel(name: string): BroadcastChannel {
    const channel = new BroadcastChannel(name);
    this.#channels.push(channel);
    const post = channel.postMessage.bind(channel);
    channel.postMessage = (message: unknown) => (this.#isDead ? undefined : post(message));
    return channel;
  }

  #engine(engine: EngineModule): EngineModule {
    return {
      ...engine,
      openReplica: async (...given) => {
        const replica = await engine.openReplica(...given);
        this.#replicas.push(replica);
        return replica;
      },
    };
  }

  /** Ends the worker's thread, as a crash does. */
  terminate(): void {
    if (this.#isDead) {
      return;
    }
    this.#isDead = true;
    this.#channels.forEach((channel) => channel.close());
    // Uncommitted writes are rolled back, as the next leader's SQLite would do.
    this.#replicas.forEach((replica) => replica.close());
    // Closed so that no part of the worker keeps the process alive.
    void this.#mine?.close();
    FakeWorker.locks.kill(this.agent);
  }
}

/** Makes this process the browser of one test; the returned function opens a tab's page. */
export function browser(engine: () => EngineModule): (hasLocks?: boolean) => symbol {
  FakeWorker.locks = new FakeLocks();
  FakeWorker.engine = engine;
  workers.length = 0;
  Object.assign(globalThis, { Worker: FakeWorker, location: new URL("http://plan.test/") });
  return (hasLocks = true) => {
    const page = Symbol("page");
    const locks = hasLocks ? FakeWorker.locks.agent(page) : undefined;
    Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
    return page;
  };
}

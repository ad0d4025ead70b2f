/**
 * How a leader reaches the tabs and is reached by them: the channel for all, the one with calls to
 * it, and one to each tab with answers.
 *
 * Invariants:
 * - Its own tab's answers go by the worker's port, without a copy of what can be handed over.
 * - A tab's channel is open from the first message to it until the tab is gone.
 */
import {
  allChannel,
  peerChannel,
  type BroadcastMessage,
  type LeaderMessage,
  type TabMessage,
  type WorkerStart,
} from "../shared/tab-messages.js";

export interface LeaderChannelsDeps {
  readonly start: WorkerStart;
  /** To the own tab. */
  readonly post: (message: TabMessage, transfer: readonly ArrayBuffer[]) => void;
  readonly openChannel: (name: string) => BroadcastChannel;
}

export class LeaderChannels {
  readonly #deps: LeaderChannelsDeps;
  readonly #all: BroadcastChannel;
  readonly #calls: BroadcastChannel;
  readonly #byTab = new Map<string, BroadcastChannel>();

  constructor(deps: LeaderChannelsDeps) {
    const { name, worker } = deps.start;
    this.#deps = deps;
    this.#all = deps.openChannel(allChannel(name));
    this.#calls = deps.openChannel(peerChannel(name, worker));
  }

  /** Begins to hear: calls, and tabs that ask who the leader is. */
  listen(onCall: (message: LeaderMessage) => void, onFindLeader: () => void): void {
    this.#calls.onmessage = (event: MessageEvent<LeaderMessage>) => onCall(event.data);
    this.#all.onmessage = (event: MessageEvent<BroadcastMessage>) => {
      if (event.data.kind === "findLeader") {
        onFindLeader();
      }
    };
  }

  broadcast(message: BroadcastMessage): void {
    this.#all.postMessage(message);
  }

  sendToTab(tab: string, message: TabMessage, transfer: readonly ArrayBuffer[]): void {
    if (tab === this.#deps.start.tab) {
      this.#deps.post(message, transfer);
    } else {
      this.#channelOf(tab).postMessage(message);
    }
  }

  /** The tab is gone. */
  closeTab(tab: string): void {
    this.#byTab.get(tab)?.close();
    this.#byTab.delete(tab);
  }

  close(): void {
    [this.#all, this.#calls, ...this.#byTab.values()].forEach((channel) => channel.close());
  }

  #channelOf(tab: string): BroadcastChannel {
    const { openChannel, start } = this.#deps;
    const known = this.#byTab.get(tab) ?? openChannel(peerChannel(start.name, tab));
    this.#byTab.set(tab, known);
    return known;
  }
}

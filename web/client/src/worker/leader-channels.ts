/**
 * The channels of a leader: one for all tabs, one with calls to it, and one to each tab with
 * answers.
 *
 * Invariants:
 * - Answers to the leader's own tab go through the worker's port, without a copy of transferable
 *   data.
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
  /** Sends a message to the leader's own tab. */
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

  /** Begins to receive calls, and requests of tabs that ask who the leader is. */
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

  /** Closes the channel of a tab that is gone. */
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

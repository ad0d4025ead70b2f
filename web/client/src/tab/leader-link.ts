/**
 * A tab's link to the leader: by the port of the tab's own worker, or else by the leader's channel.
 *
 * Invariant: there is one link at a time; the former one is closed before another is made.
 */
import { peerChannel, type LeaderMessage } from "../shared/tab-messages.js";

/** Hears of another leader, and how it is asked. */
export type LeaderListener = (
  leader: string,
  post: (message: LeaderMessage) => void,
  isOwn: boolean,
) => void;

export interface LeaderLinkDeps {
  /** The database's name. */
  readonly name: string;
  /** The port of the tab's own worker, if this is its id. */
  readonly ownPort: (worker: string) => Worker | undefined;
  readonly onLeader: LeaderListener;
}

export class LeaderLink {
  readonly #deps: LeaderLinkDeps;
  #leader: string | undefined;
  /** Undefined also where the leader is asked by a port. */
  #channel: BroadcastChannel | undefined;

  constructor(deps: LeaderLinkDeps) {
    this.#deps = deps;
  }

  /** The id of the leader that the tab knows at the moment. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** Makes the link, unless it is there. */
  open(leader: string): void {
    if (leader === this.#leader) {
      return;
    }
    this.close();
    this.#leader = leader;
    const port = this.#deps.ownPort(leader);
    if (port !== undefined) {
      this.#deps.onLeader(leader, (message) => port.postMessage(message), true);
      return;
    }
    const channel = new BroadcastChannel(peerChannel(this.#deps.name, leader));
    this.#channel = channel;
    this.#deps.onLeader(leader, (message) => channel.postMessage(message), false);
  }

  close(): void {
    this.#channel?.close();
    this.#channel = undefined;
    this.#leader = undefined;
  }
}

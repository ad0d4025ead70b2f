/**
 * A tab's link to the leader: through the port of the tab's own worker, or else through the
 * leader's channel.
 *
 * Invariant: there is one link at a time; the former link is closed before another is opened.
 */
import { peerChannel, type LeaderMessage } from "../shared/tab-messages.js";

/** Called for each new leader, with the function that sends it messages. */
export type LeaderListener = (
  leader: string,
  post: (message: LeaderMessage) => void,
  isOwn: boolean,
) => void;

export interface LeaderLinkDeps {
  /** The database's name. */
  readonly name: string;
  /** Returns the port of the tab's own worker, if this is its id. */
  readonly ownPort: (worker: string) => Worker | undefined;
  readonly onLeader: LeaderListener;
}

export class LeaderLink {
  readonly #deps: LeaderLinkDeps;
  #leader: string | undefined;
  /** The leader's channel; undefined also if the link uses a port. */
  #channel: BroadcastChannel | undefined;

  constructor(deps: LeaderLinkDeps) {
    this.#deps = deps;
  }

  /** The id of the leader that the tab knows at the moment. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** Opens the link to this leader, unless it is already open. */
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

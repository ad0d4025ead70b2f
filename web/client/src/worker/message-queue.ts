/**
 * A queue that handles each message in a later task.
 *
 * Chromium's workers handle messages of a `BroadcastChannel` before anything else. If every
 * message were handled at once, a few busy tabs would keep the leader's own tab, whose calls
 * arrive through the worker's port, waiting for ever. With the queue, the channel is soon empty,
 * as its tabs wait for their answers, and the port gets its turn.
 */
export interface MessageQueue<T> {
  enqueue(message: T): void;
  /** Closes the queue; messages in it are dropped. */
  close(): void;
}

export function createMessageQueue<T>(handle: (message: T) => void): MessageQueue<T> {
  const { port1, port2 } = new MessageChannel();
  let waiting: T[] = [];
  port2.onmessage = () => {
    const messages = waiting;
    waiting = [];
    messages.forEach(handle);
  };
  return {
    enqueue(message) {
      if (waiting.length === 0) {
        port1.postMessage(undefined);
      }
      waiting.push(message);
    },
    close() {
      waiting = [];
      port1.close();
      port2.close();
    },
  };
}

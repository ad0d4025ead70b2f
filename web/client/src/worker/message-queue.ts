/**
 * Messages, handled in tasks of their own.
 *
 * Chromium's workers handle what comes over a `BroadcastChannel` before anything else. If every
 * message were handled at once, some busy tabs would keep the leader's own tab, whose calls come by
 * the worker's port, waiting for ever. Put off like this, the channel is soon empty, as its tabs
 * wait for their answers, and the port has its turn.
 */
export interface MessageQueue<T> {
  enqueue(message: T): void;
  /** What is in it is not handled any more. */
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

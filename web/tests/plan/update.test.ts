/** Tests that an open page checks for a new version of Plan, and that the notice stays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Toast } from "../../plan/src/app-context.js";
import { onUpdate, TAKE_OVER } from "../../plan/src/update.js";

/** The parts of a browser that take part: a page, and the registration of its service worker. */
class FakeRegistration extends EventTarget {
  looks = 0;
  waiting: unknown = null;
  installing: (EventTarget & { state: string; said?: unknown }) | null = null;

  async update(): Promise<void> {
    this.looks += 1;
  }
}

interface FakePage extends EventTarget {
  visibilityState: string;
}

function browser(): { page: FakePage; registration: FakeRegistration } {
  const registration = new FakeRegistration();
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const container = Object.assign(new EventTarget(), {
    controller: {},
    register: async () => registration,
  });
  const define = (name: string, value: unknown): void =>
    void Object.defineProperty(globalThis, name, { value, configurable: true });
  define("document", page);
  define("navigator", { serviceWorker: container });
  return { page, registration };
}

test("a page that is shown again looks for a new version, and the note of it stays", async () => {
  const { page, registration } = browser();
  const toasts: Toast[] = [];
  const end = onUpdate((toast) => toasts.push(toast));
  await Promise.resolve();
  page.visibilityState = "hidden";
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal(registration.looks, 0);
  page.visibilityState = "visible";
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal(registration.looks, 1);

  const said: unknown[] = [];
  const worker = Object.assign(new EventTarget(), {
    state: "installed",
    postMessage: (message: unknown) => said.push(message),
  });
  registration.installing = worker;
  registration.dispatchEvent(new Event("updatefound"));
  worker.dispatchEvent(new Event("statechange"));
  const [toast] = toasts;
  assert.equal(toast?.stays, true);
  toast?.action?.run();
  assert.deepEqual(said, [TAKE_OVER]);

  end();
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal(registration.looks, 1);
});

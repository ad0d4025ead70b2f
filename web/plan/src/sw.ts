/**
 * The service worker keeps the app's files for use without a network.
 *
 * - The build replaces `__FILES__` and `__VERSION__`: every file of the app, and a hash of them.
 *   The files of one version are stored together, before the version is used, and removed
 *   together.
 * - Requests for anything else go to the network untouched: above all every call of the API.
 * - A new version waits until the user wants it.
 */
import { TAKE_OVER } from "./update.js";

declare const __FILES__: readonly string[];
declare const __VERSION__: string;

const worker = globalThis as unknown as ServiceWorkerGlobalScope;
const PREFIX = "plan-";
const CACHE = PREFIX + __VERSION__;
const PAGE = "/";
const FILES: ReadonlySet<string> = new Set([PAGE, ...__FILES__.map(pathOf)]);

function pathOf(file: string): string {
  const path = new URL(file, worker.location.origin).pathname;
  return path === "/index.html" ? PAGE : path;
}

worker.addEventListener("install", (event) => {
  event.waitUntil(
    caches.open(CACHE).then((cache) =>
      // Bypasses the HTTP cache: the server's present files are stored.
      cache.addAll([...FILES].map((path) => new Request(path, { cache: "no-cache" }))),
    ),
  );
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) {
        if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
      }
      await worker.clients.claim();
    })(),
  );
});

worker.addEventListener("message", (event) => {
  if (event.data === TAKE_OVER) void worker.skipWaiting();
});

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== worker.location.origin) return;
  if (!FILES.has(url.pathname)) return;
  event.respondWith(
    caches.match(url.pathname, { cacheName: CACHE }).then((found) => found ?? fetch(request)),
  );
});

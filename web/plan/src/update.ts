/**
 * Registers the service worker once, and offers new versions to the user, who decides when to load
 * them. An open page checks for a new version when it is shown again, and every hour.
 */
import type { Toast } from "./app-context.js";

/** The message to the waiting worker when the user wants the new version. */
export const TAKE_OVER = "take-over";

const LOOK_MS = 3_600_000;

export function onUpdate(showToast: (toast: Toast) => void): () => void {
  const container = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  if (container === undefined) return () => undefined;
  let isWanted = false;
  const reload = (): void => {
    if (isWanted) location.reload();
  };
  container.addEventListener("controllerchange", reload);
  const offer = (worker: ServiceWorker): void =>
    showToast({
      text: "A new version is ready.",
      stays: true,
      action: {
        label: "Reload",
        run: () => {
          isWanted = true;
          worker.postMessage(TAKE_OVER);
        },
      },
    });
  let registered: ServiceWorkerRegistration | undefined;
  // Offline, no update can be found.
  const look = (): void => void registered?.update().catch(() => undefined);
  const lookWhenShown = (): void => {
    if (document.visibilityState === "visible") look();
  };
  container.register("/sw.js").then(
    (registration) => {
      registered = registration;
      watch(registration, offer);
    },
    // Without a service worker the app works as well, but not offline.
    () => undefined,
  );
  document.addEventListener("visibilitychange", lookWhenShown);
  const timer = setInterval(look, LOOK_MS);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", lookWhenShown);
    container.removeEventListener("controllerchange", reload);
  };
}

function watch(
  registration: ServiceWorkerRegistration,
  offer: (worker: ServiceWorker) => void,
): void {
  // Without a controller this is the first version, and there is nothing to replace.
  const isUpdate = (): boolean => navigator.serviceWorker.controller !== null;
  if (registration.waiting !== null && isUpdate()) offer(registration.waiting);
  registration.addEventListener("updatefound", () => {
    const worker = registration.installing;
    worker?.addEventListener("statechange", () => {
      if (worker.state === "installed" && isUpdate()) offer(worker);
    });
  });
}

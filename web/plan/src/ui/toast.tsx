/**
 * A short message at the lower edge, with an action. There is one at a time; it stays while the
 * pointer or the focus is on it.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Toast } from "../app-context.js";
import { Icon } from "./icons.js";

const SHOWN_MS = 6000;

interface ToastRegionProps {
  readonly toast: Toast | undefined;
  readonly onClose: () => void;
}

export function ToastRegion({ toast, onClose }: ToastRegionProps): JSX.Element {
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (toast === undefined || isHeld || toast.stays === true || toast.tone === "bad") {
      return undefined;
    }
    const timer = setTimeout(onClose, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [toast, isHeld]);
  useEffect(() => setHeld(false), [toast]);
  return (
    <div class="toasts" role="status" aria-live="polite" data-testid="toast">
      {toast !== undefined && (
        <div
          class={`toast toast-${toast.tone ?? "plain"}`}
          onPointerEnter={() => setHeld(true)}
          onPointerLeave={() => setHeld(false)}
          onFocusIn={() => setHeld(true)}
          onFocusOut={() => setHeld(false)}
        >
          <span class="toast-text">{toast.text}</span>
          {toast.action !== undefined && (
            <button type="button" class="toast-action" onClick={toast.action.run}>
              {toast.action.label}
            </button>
          )}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={onClose}>
            <Icon name="close" size={16} />
          </button>
        </div>
      )}
    </div>
  );
}

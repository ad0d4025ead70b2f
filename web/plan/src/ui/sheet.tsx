/**
 * A modal layer over the page, on `<dialog>`: the browser keeps the focus in it, closes it on
 * Escape and on going back, and then restores the focus.
 */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useLayer } from "./layers.js";

interface SheetProps {
  readonly class: string;
  /** The name for screen readers, or the id of the element that has the name. */
  readonly label: string | { readonly id: string };
  /** Closes the sheet; if left out, only its content can close it. */
  readonly onClose?: (() => void) | undefined;
  readonly testId?: string | undefined;
  readonly children: ComponentChildren;
}

export function Sheet({ label, onClose, testId, children, ...props }: SheetProps): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useLayer(onClose);
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const name =
    typeof label === "string" ? { "aria-label": label } : { "aria-labelledby": label.id };
  return (
    <dialog
      ref={ref}
      class={props.class}
      {...name}
      data-testid={testId}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) onClose?.();
      }}
    >
      {children}
    </dialog>
  );
}

/**
 * A modal dialog, on `<dialog>`: the browser keeps the focus in it, closes it on Escape, and gives
 * the focus back. On a phone it comes up from the lower edge.
 */
import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.js";

interface Props {
  readonly title: string;
  /** Left out: it closes only by what is in it. */
  readonly onClose?: (() => void) | undefined;
  readonly size?: "small" | "medium" | "large";
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  readonly testId?: string;
}

export function Dialog(props: Props): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const { onClose } = props;
  return (
    <dialog
      ref={ref}
      class={`dialog dialog-${props.size ?? "medium"}`}
      aria-labelledby={titleId}
      data-testid={props.testId}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) onClose?.();
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={titleId}>{props.title}</h2>
          {onClose !== undefined && (
            <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        <div class="dialog-body">{props.children}</div>
        {props.footer !== undefined && <footer class="dialog-foot">{props.footer}</footer>}
      </div>
    </dialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly children: (ids: {
    readonly id: string;
    readonly hint: string | undefined;
  }) => ComponentChildren;
}

/** A labelled input, with a hint under it. */
export function Field({ label, hint, children }: FieldProps): JSX.Element {
  const id = useId();
  const hintId = `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, hint: hint === undefined ? undefined : hintId })}
      {hint !== undefined && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** What went wrong, told to screen readers at once. */
export function Problem({ text }: { readonly text: string | undefined }): JSX.Element {
  return (
    <div role="alert" class={text === undefined ? "visually-hidden" : "problem"}>
      {text !== undefined && <Icon name="warning" size={18} />}
      {text !== undefined && <span>{text}</span>}
    </div>
  );
}

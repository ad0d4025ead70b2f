/**
 * A modal dialog with a title, and the fields of its forms. On a phone it slides up from the lower
 * edge.
 */
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "./icons.js";
import { Sheet } from "./sheet.js";

/** The props of every dialog of the app. */
export interface DialogCloseProps {
  readonly onClose: () => void;
}

interface DialogProps {
  readonly title: string;
  /** Closes the dialog; if left out, only its content can close it. */
  readonly onClose?: (() => void) | undefined;
  readonly size?: "small" | "medium" | "large";
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  readonly testId?: string;
}

export function Dialog(props: DialogProps): JSX.Element {
  const titleId = useId();
  const { onClose } = props;
  return (
    <Sheet
      class={`dialog dialog-${props.size ?? "medium"}`}
      label={{ id: titleId }}
      onClose={onClose}
      testId={props.testId}
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
    </Sheet>
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

/** A labeled input, with a hint below it. */
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

/** The rules for a new account password, wherever one is chosen. */
export const NEW_PASSWORD = {
  hint: "At least 8 characters",
  lengthMin: 8,
  autocomplete: "new-password",
} as const;

interface PasswordProps {
  readonly label: string;
  readonly hint?: string;
  readonly autocomplete: "current-password" | "new-password";
  readonly lengthMin?: number;
  readonly autofocus?: boolean;
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** A password field, which hides its text. */
export function PasswordField(props: PasswordProps): JSX.Element {
  return (
    <Field label={props.label} {...(props.hint === undefined ? {} : { hint: props.hint })}>
      {({ id, hint }) => (
        <input
          id={id}
          aria-describedby={hint}
          type="password"
          name="password"
          autocomplete={props.autocomplete}
          required
          minLength={props.lengthMin ?? 1}
          autofocus={props.autofocus ?? false}
          value={props.value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface CheckFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}

/** A check box with a label, and a hint below it. */
export function CheckField(props: CheckFieldProps): JSX.Element {
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled ?? false}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>
        <strong>{props.label}</strong>
        <small>{props.hint}</small>
      </span>
    </label>
  );
}

/** Shows an error, and announces it to screen readers at once. */
export function Problem({ text }: { readonly text: string | undefined }): JSX.Element {
  return (
    <div role="alert" class={text === undefined ? "visually-hidden" : "problem"}>
      {text !== undefined && <Icon name="warning" size={18} />}
      {text !== undefined && <span>{text}</span>}
    </div>
  );
}

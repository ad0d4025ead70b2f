/**
 * The field that searches all lists.
 */
import type { JSX } from "preact";
import { Icon } from "../ui/icons.js";

interface SearchFieldProps {
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly onClose?: () => void;
}

export function SearchField({ value, onInput, onClose }: SearchFieldProps): JSX.Element {
  return (
    <search class="search">
      <Icon name="search" size={18} />
      <input
        id="search"
        type="search"
        aria-label="Search all lists"
        placeholder="Search"
        autocomplete="off"
        dir="auto"
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          onInput("");
          event.currentTarget.blur();
          onClose?.();
        }}
      />
      {value === "" && onClose === undefined && <kbd aria-hidden="true">/</kbd>}
      {(value !== "" || onClose !== undefined) && (
        <button
          type="button"
          class="icon-button"
          aria-label="Clear search"
          onClick={() => {
            onInput("");
            onClose?.();
          }}
        >
          <Icon name="close" size={16} />
        </button>
      )}
    </search>
  );
}

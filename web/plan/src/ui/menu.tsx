/**
 * A button that opens a list of actions, by the menu-button pattern: arrow keys move, Escape
 * closes the list and returns the focus.
 */
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.js";

export interface MenuEntry {
  readonly label: string;
  readonly icon: IconName;
  readonly isDangerous?: boolean;
  readonly run: () => void;
}

interface MenuProps {
  readonly label: string;
  readonly entries: readonly MenuEntry[];
}

export function Menu({ label, entries }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const menuId = useId();
  const buttons = (): HTMLButtonElement[] => [
    ...(root.current?.querySelectorAll<HTMLButtonElement>('[role="menuitem"]') ?? []),
  ];
  const close = (): void => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    buttons()[0]?.focus();
    const onOutside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", onOutside);
    return () => document.removeEventListener("pointerdown", onOutside);
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOpen) return;
    event.stopPropagation();
    if (event.key === "Escape") close();
    if (event.key === "Tab") setOpen(false);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    all[(at + step + all.length) % all.length]?.focus();
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="icon-button"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={menuId}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="more" />
      </button>
      <div class="menu-list" role="menu" id={menuId} aria-label={label} hidden={!isOpen}>
        {entries.map((entry) => (
          <button
            type="button"
            role="menuitem"
            tabIndex={-1}
            key={entry.label}
            class={entry.isDangerous === true ? "dangerous" : undefined}
            onClick={() => {
              close();
              entry.run();
            }}
          >
            <Icon name={entry.icon} size={18} />
            {entry.label}
          </button>
        ))}
      </div>
    </div>
  );
}

/** The brand of the page: Warren's logo and name. */
import type { JSX } from "preact";

export function Brand(): JSX.Element {
  return (
    <p class="brand">
      <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="brand-ground" />
        <path d="M7 25a9 9 0 0 1 18 0" class="brand-line" />
        <path d="M13 13.5V6.8M19 13.5V6.8" class="brand-line" />
        <path d="M12.5 25a3.5 3.5 0 0 1 7 0z" class="brand-shape" />
      </svg>
      <span>
        Warren <span class="brand-part">admin</span>
      </span>
    </p>
  );
}

/**
 * The icons: strokes on a grid of 24, in the color of the text. They are decoration; the elements
 * that contain them have a name.
 */
import type { JSX } from "preact";

const PATHS = {
  today: "M5 5.5h14v14H5zM5 9.5h14M9 3.5v4M15 3.5v4M12 13v2.5h2",
  upcoming: "M5 5.5h14v14H5zM5 9.5h14M9 3.5v4M15 3.5v4M9 14.5h6M13 12.5l2 2-2 2",
  all: "M4.5 13l2-8h11l2 8v6h-15zM4.5 13.5h4l1.5 2.5h4l1.5-2.5h4",
  none: "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M6.5 6.5l11 11",
  search: "M4.5 10.5a6 6 0 1 0 12 0a6 6 0 1 0-12 0M15 15l5 5",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  back: "M14.5 5.5L8 12l6.5 6.5",
  down: "M6 9.5l6 6 6-6",
  note: "M5 7h14M5 12h14M5 17h8",
  trash: "M5 7h14M10 4h4M7 7l.8 12.5h8.4L17 7M10.3 10.5l.3 5.5M13.7 10.5l-.3 5.5",
  clock: "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M12 7.5V12l3 2",
  move: "M4.5 6.5v12h15v-10h-8l-2-2zM9 13.5h6M13 11.5l2 2-2 2",
  grip: "M9 6.5h.01M15 6.5h.01M9 12h.01M15 12h.01M9 17.5h.01M15 17.5h.01",
  settings:
    "M4 7.5h9M17 7.5h3M4 16.5h3M11 16.5h9" +
    "M13 7.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0M7 16.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cloud: "M7 18.5a4 4 0 0 1-.6-7.95A5.5 5.5 0 0 1 17 9.6a4.5 4.5 0 0 1 0 8.9z",
  offline:
    "M7 18.5a4 4 0 0 1-.6-7.95A5.5 5.5 0 0 1 8 7.6" +
    "M11 6.6a5.5 5.5 0 0 1 6 3 4.5 4.5 0 0 1 3 7.6M17 18.5H7M4 4l16 16",
  device: "M7 3.5h10v17H7zM11 17.5h2",
  warning: "M12 4.5l8.5 15h-17zM12 10.5v4M12 17h.01",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  sync: "M19 8A8 8 0 0 0 5 9.5M5 5v4.5h4.5M5 16a8 8 0 0 0 14-1.5M19 19v-4.5h-4.5",
  download: "M12 4v11M7.5 11l4.5 4.5L16.5 11M5 19.5h14",
  upload: "M12 15.5v-11M7.5 8.5L12 4l4.5 4.5M5 19.5h14",
  copy: "M9 9h10.5v10.5H9zM5 15V4.5h10",
  user: "M8 8.5a4 4 0 1 0 8 0a4 4 0 1 0-8 0M4.5 20a7.5 7.5 0 0 1 15 0",
  help:
    "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0" +
    "M9.8 10a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6M12 16.2h.01",
  edit: "M5 19l1-4L16 5l3 3L9 18z",
} as const;

export type IconName = keyof typeof PATHS;

/** Icons made of dots, which need more weight than lines. */
const DOTS: ReadonlySet<IconName> = new Set(["grip", "more"]);

interface IconProps {
  readonly name: IconName;
  readonly size?: number;
}

export function Icon({ name, size = 20 }: IconProps): JSX.Element {
  return (
    <svg
      class={DOTS.has(name) ? "icon icon-dots" : "icon"}
      viewBox="0 0 24 24"
      width={size}
      height={size}
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** Formats numbers for people. Pure functions; the present time is an argument. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const day = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

/** Formats a count: exactly below a hundred thousand, abbreviated above. */
export function count(value: number): string {
  return (Math.abs(value) < 100_000 ? whole : compact).format(value);
}

export function bytes(value: number): string {
  let scaled = value;
  let unit = 0;
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || scaled >= 100 ? 0 : 1;
  return `${scaled.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

/** Formats a share from 0 to 1 as a percentage. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

export function rate(value: number): string {
  return value >= 10 || value === 0 ? count(value) : value.toFixed(1);
}

export function shortDuration(millis: number): string {
  if (millis < 1000) {
    return `${millis < 10 ? millis.toFixed(1) : millis.toFixed(0)} ms`;
  }
  const value = millis / 1000;
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} s`;
}

/** Formats a duration with its two largest units. */
export function duration(millis: number): string {
  const total = Math.max(0, Math.floor(millis / 1000));
  const [days, hours] = [Math.floor(total / DAY_S), Math.floor((total % DAY_S) / HOUR_S)];
  const [minutes, rest] = [Math.floor((total % HOUR_S) / MINUTE_S), total % MINUTE_S];
  if (days > 0) {
    return `${days} d ${hours} h`;
  }
  if (hours > 0) {
    return `${hours} h ${minutes} min`;
  }
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** Formats the time since `then`; both times are in milliseconds since 1970. */
export function ago(then: number, now: number): string {
  const age = Math.max(0, (now - then) / 1000);
  if (age < 90) {
    return age < 10 ? "just now" : "a minute ago";
  }
  if (age < HOUR_S) {
    return `${Math.round(age / MINUTE_S)} min ago`;
  }
  if (age < DAY_S) {
    return `${Math.round(age / HOUR_S)} h ago`;
  }
  return age < 30 * DAY_S ? `${Math.round(age / DAY_S)} d ago` : date(then);
}

export function date(millis: number): string {
  return day.format(millis);
}

export function dateTime(millis: number): string {
  return moment.format(millis);
}

/** Returns a number with its noun, in the plural if needed. */
export function several(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

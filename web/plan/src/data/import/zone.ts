/**
 * The day that a moment has in a time zone.
 */
import { dayOf } from "../dates.js";

const MOMENT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}):?(\d{2})?$/;

/**
 * `2027-03-12` for a moment of ISO 8601, with its time unless it is meant for the whole day.
 * A zone that is unknown is the device's; a text that is no moment stays as it is.
 */
export function dayIn(text: string, zone: string, isWholeDay: boolean): string {
  const parts = MOMENT.exec(text.trim());
  if (!parts) return text;
  const offset = parts[2] === "Z" ? "Z" : `${parts[2]}:${parts[3] ?? "00"}`;
  const time = new Date(`${parts[1]}${offset}`);
  if (Number.isNaN(time.getTime())) return text;
  const { day, clock } = readClock(time, zone);
  return isWholeDay || clock === "00:00" ? day : `${day} ${clock}`;
}

function readClock(time: Date, zone: string): { readonly day: string; readonly clock: string } {
  try {
    // Swedish dates are those of ISO 8601.
    const [day = "", clock = ""] = time
      .toLocaleString("sv", {
        timeZone: zone.trim(),
        dateStyle: "short",
        timeStyle: "short",
      })
      .split(" ");
    return { day, clock };
  } catch {
    const two = (value: number): string => String(value).padStart(2, "0");
    return { day: dayOf(time), clock: `${two(time.getHours())}:${two(time.getMinutes())}` };
  }
}

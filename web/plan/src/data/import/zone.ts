/**
 * Converts a point in time to the day in a time zone.
 */
import { dayOf } from "../dates.js";

const MOMENT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}):?(\d{2})?$/;

/**
 * Returns the day, such as `2027-03-12`, of an ISO 8601 time, and the time of day unless the time
 * stands for a whole day. For an unknown zone, the device's is used; a text that is not a time is
 * returned unchanged.
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
    // Swedish dates have the form of ISO 8601.
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

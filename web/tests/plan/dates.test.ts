/** Tests days, in any time zone of the device. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addDays,
  dayOf,
  daysBetween,
  describeAgo,
  describeDay,
  nextMonday,
} from "../../plan/src/data/dates.js";

test("the day is the device's, at any hour", () => {
  assert.equal(dayOf(new Date(2027, 0, 1, 0, 0)), "2027-01-01");
  assert.equal(dayOf(new Date(2027, 11, 31, 23, 59)), "2027-12-31");
});

test("days are added over months, leap days and changes of the clock", () => {
  assert.equal(addDays("2028-02-28", 1), "2028-02-29");
  assert.equal(addDays("2027-12-31", 1), "2028-01-01");
  assert.equal(addDays("2027-03-28", 1), "2027-03-29");
  assert.equal(daysBetween("2027-03-01", "2027-04-01"), 31);
  assert.equal(daysBetween("2027-04-01", "2027-03-01"), -31);
});

test("the next Monday is never today", () => {
  assert.equal(nextMonday("2026-11-22"), "2026-11-23");
  assert.equal(nextMonday("2026-11-23"), "2026-11-30");
  assert.equal(nextMonday("2026-11-24"), "2026-11-30");
});

test("near days have names, others a date, other years a year", () => {
  const today = "2026-11-22";
  const told = (day: string): string => describeDay(day, today, "en-GB");
  assert.equal(told(today), "Today");
  assert.equal(told("2026-11-23"), "Tomorrow");
  assert.equal(told("2026-11-21"), "Yesterday");
  assert.equal(told("2026-11-28"), "Saturday");
  assert.equal(told("2026-11-29"), "29 Nov");
  assert.equal(told("2026-11-20"), "20 Nov");
  assert.equal(told("2027-01-02"), "2 Jan 2027");
});

test("how long ago, in the largest unit that fits", () => {
  const now = Date.UTC(2026, 10, 22);
  const told = (seconds: number): string => describeAgo(now - seconds * 1000, now);
  assert.deepEqual([0, 59, 60, 3599, 3600, 86_399, 86_400, 172_800].map(told), [
    "just now",
    "just now",
    "1 min ago",
    "59 min ago",
    "1 h ago",
    "23 h ago",
    "yesterday",
    "2 days ago",
  ]);
});

/**
 * The order of rows: fractional positions, sorted by (position, id).
 *
 * - Positions are texts that compare by their bytes, as SQLite compares TEXT.
 * - Two devices may assign the same position at the same time. Such rows are sorted by their ids,
 *   and get separate positions when a row is put between them: no coordination is needed.
 */
import { generateKeyBetween, generateNKeysBetween } from "fractional-indexing";

/** A row and its position. */
export type PositionedRow = {
  readonly id: string;
  readonly position: string;
};

/** New positions by id: those of the placed row, and of the rows that had to make room. */
export type Placement = readonly PositionedRow[];

/**
 * Puts `id` after `before` (or first) and before all of `following`.
 *
 * `following` are the rows after the place, in their order: all rows that share `before`'s
 * position, and one more. If there is no such further row, the place is at the end of the list.
 */
export function place(
  id: string,
  before: PositionedRow | undefined,
  following: readonly PositionedRow[],
): Placement {
  const lower = before?.position ?? null;
  const tied = following.filter((row) => row.position === lower);
  const upper = following.find((row) => row.position !== lower)?.position ?? null;
  const moved = [id, ...tied.map((row) => row.id)];
  const positions = generateNKeysBetween(lower, upper, moved.length);
  return moved.map((row, index) => ({ id: row, position: positions[index] as string }));
}

/** Returns a position after the last one. */
export function positionAfter(last: string | undefined): string {
  return generateKeyBetween(last ?? null, null);
}

/** Returns a position before the first one. */
export function positionBefore(first: string | undefined): string {
  return generateKeyBetween(null, first ?? null);
}

/** Returns `count` positions before the first one, in order. */
export function positionsBefore(first: string | undefined, count: number): string[] {
  return generateNKeysBetween(null, first ?? null, count);
}

/** Returns `count` positions after the last one, in order. */
export function positionsAfter(last: string | undefined, count: number): string[] {
  return generateNKeysBetween(last ?? null, null, count);
}

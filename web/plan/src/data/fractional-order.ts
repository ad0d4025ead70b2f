/**
 * Where rows stand among others: fractional positions, ordered by (position, id).
 *
 * - Positions are texts that compare by their bytes, as SQLite compares TEXT.
 * - Two devices may give out the same position at the same time. Such rows are ordered by their
 *   ids, and move apart when something is put between them: no device ever has to be asked.
 */
import { generateKeyBetween, generateNKeysBetween } from "fractional-indexing";

/** A row and where it stands. */
export type PositionedRow = {
  readonly id: string;
  readonly position: string;
};

/** New positions, by id: that of the row which is placed, and of those that had to make room. */
export type Placement = readonly PositionedRow[];

/**
 * Puts `id` after `before` (or first) and before all of `following`.
 *
 * `following` are the rows after the place, in their order: all those that share `before`'s
 * position, and one more. Fewer are the end of the list.
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

/** The position after the last one. */
export function positionAfter(last: string | undefined): string {
  return generateKeyBetween(last ?? null, null);
}

/** The position before the first one. */
export function positionBefore(first: string | undefined): string {
  return generateKeyBetween(null, first ?? null);
}

/** As many positions before the first one as are wanted, in order. */
export function positionsBefore(first: string | undefined, count: number): string[] {
  return generateNKeysBetween(null, first ?? null, count);
}

/** As many positions after the last one as are wanted, in order. */
export function positionsAfter(last: string | undefined, count: number): string[] {
  return generateNKeysBetween(last ?? null, null, count);
}

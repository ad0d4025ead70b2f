/**
 * The rows of a list, counted from the top, and where the user is among them.
 *
 * Rows are: the open items, then, if there are finished ones, a row that shows and hides these,
 * then these.
 */

/** How many rows of which kind a view has. */
export interface VisibleRowCounts {
  readonly open: number;
  readonly done: number;
  readonly isDoneShown: boolean;
}

export function rowCount({ open, done, isDoneShown }: VisibleRowCounts): number {
  return open + (done > 0 ? 1 : 0) + (isDoneShown ? done : 0);
}

/** Where the user is in the list. */
export interface ListCursor {
  readonly index: number;
  /** Followed when the row moves; `undefined`: whatever stands there. */
  readonly id: string | undefined;
}

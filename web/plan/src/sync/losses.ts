/**
 * How many edits were lost and how many rows are hidden, for the mark on the pill: counted when
 * Plan starts, and whenever a sync has found more.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect, useState } from "preact/hooks";
import { useStatus } from "../ui/hooks.js";

export interface LossCounts {
  readonly lostEdits: number;
  readonly hiddenRows: number;
}

/** The list is made from the whole history: first the screen, then this. */
const LATER_MS = 1_000;

/** Returns the numbers, and what counts them again. */
export function useLosses(db: WarrenDatabase): readonly [LossCounts, () => void] {
  const { account, newConflictsCount, hiddenRowsCount } = useStatus(db);
  const [lostEdits, setLostEdits] = useState(0);
  const [round, setRound] = useState(0);
  const hasAccount = account !== undefined;
  useEffect(() => {
    // Without an account there is something only where this device has just said so.
    if (!hasAccount && round === 0) return undefined;
    let isOver = false;
    const count = (): void =>
      void db.conflicts().then(
        (conflicts) => isOver || setLostEdits(conflicts.length),
        // The dialog that lists them says what is wrong.
        () => undefined,
      );
    const timer = setTimeout(count, LATER_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [db, hasAccount, newConflictsCount, round]);
  return [{ lostEdits, hiddenRows: hiddenRowsCount }, () => setRound((before) => before + 1)];
}

/** What the mark means, in words. */
export function lossesText({ lostEdits, hiddenRows }: LossCounts): string | undefined {
  const parts: string[] = [];
  if (lostEdits === 1) parts.push("1 edit was lost");
  if (lostEdits > 1) parts.push(`${lostEdits} edits were lost`);
  if (hiddenRows === 1) parts.push("1 item is hidden");
  if (hiddenRows > 1) parts.push(`${hiddenRows} items are hidden`);
  return parts.length === 0 ? undefined : parts.join(", ");
}

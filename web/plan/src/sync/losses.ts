/**
 * How many edits were lost and how many rows are hidden, for the mark on the pill: counted when
 * Plan starts, and whenever a sync has found more.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect, useState } from "preact/hooks";
import { useStatus } from "../ui/hooks.js";
import { counted } from "./sync-indicator.js";

export interface LossCounts {
  readonly lostEditsCount: number;
  readonly hiddenRowsCount: number;
}

/** The list is made from the whole history: first the screen, then this. */
const LATER_MS = 1_000;

/** Returns the numbers, and what counts them again. */
export function useLosses(db: WarrenDatabase): readonly [LossCounts, () => void] {
  const { account, newConflictsCount, hiddenRowsCount } = useStatus(db);
  const [lostEditsCount, setLostEditsCount] = useState(0);
  const [round, setRound] = useState(0);
  const hasAccount = account !== undefined;
  useEffect(() => {
    // Without an account there is something only where this device has just said so.
    if (!hasAccount && round === 0) return undefined;
    let isOver = false;
    const count = (): void =>
      void db.conflicts().then(
        (conflicts) => isOver || setLostEditsCount(conflicts.length),
        // The dialog that lists them says what is wrong.
        () => undefined,
      );
    const timer = setTimeout(count, LATER_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [db, hasAccount, newConflictsCount, round]);
  return [{ lostEditsCount, hiddenRowsCount }, () => setRound((before) => before + 1)];
}

/** What the mark means, in words. */
export function lossesText({ lostEditsCount, hiddenRowsCount }: LossCounts): string | undefined {
  const parts: string[] = [];
  if (lostEditsCount > 0) parts.push(counted(lostEditsCount, "lost edit"));
  if (hiddenRowsCount > 0) parts.push(counted(hiddenRowsCount, "hidden item"));
  return parts.length === 0 ? undefined : parts.join(", ");
}

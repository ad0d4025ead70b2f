/**
 * Counts lost edits and hidden rows for the mark on the pill: when Plan starts, and whenever a
 * sync has found more.
 */
import type { WarrenDatabase } from "@warren/client";
import { useEffect, useState } from "preact/hooks";
import { useStatus } from "../ui/hooks.js";
import { counted } from "./sync-indicator.js";

export interface LossCounts {
  readonly lostEditsCount: number;
  readonly hiddenRowsCount: number;
}

/**
 * The delay before counting: the list is computed from the whole history, so the screen comes
 * first.
 */
const LATER_MS = 1_000;

/** Returns the counts, and a function that counts again. */
export function useLosses(db: WarrenDatabase): readonly [LossCounts, () => void] {
  const { account, newConflictsCount, hiddenRowsCount } = useStatus(db);
  const [lostEditsCount, setLostEditsCount] = useState(0);
  const [round, setRound] = useState(0);
  const hasAccount = account !== undefined;
  useEffect(() => {
    // Without an account, lost edits are possible only after `recount` on this device.
    if (!hasAccount && round === 0) return undefined;
    let isOver = false;
    const count = (): void =>
      void db.conflicts().then(
        (conflicts) => isOver || setLostEditsCount(conflicts.length),
        // The dialog that lists the conflicts reports the error.
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

/** Describes the counts in words. */
export function lossesText({ lostEditsCount, hiddenRowsCount }: LossCounts): string | undefined {
  const parts: string[] = [];
  if (lostEditsCount > 0) parts.push(counted(lostEditsCount, "lost edit"));
  if (hiddenRowsCount > 0) parts.push(counted(hiddenRowsCount, "hidden item"));
  return parts.length === 0 ? undefined : parts.join(", ");
}

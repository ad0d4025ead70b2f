/**
 * The pill: a small button, always on the screen, that shows the sync state and opens the details.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useApp } from "../app-context.js";
import { presentPlace } from "../databases.js";
import { useClock, useStatus } from "../ui/hooks.js";
import { Icon, type IconName } from "../ui/icons.js";
import { lossesText } from "./losses.js";
import { syncIndicator, type SyncIndicator, type StatusTone } from "./sync-indicator.js";

const ICONS: Readonly<Record<StatusTone, IconName>> = {
  quiet: "device",
  ok: "cloud",
  busy: "sync",
  warn: "offline",
  bad: "warning",
};

/** Shorter work does not change the pill. */
const BRIEF_MS = 300;

/** Returns the sync state in words. Work that ends within {@link BRIEF_MS} does not show. */
export function useSyncIndicator(): SyncIndicator {
  const { db } = useApp();
  const standing = syncIndicator(useStatus(db), useClock(30_000), presentPlace().login);
  const isBusy = standing.tone === "busy";
  const [isLong, setLong] = useState(false);
  const before = useRef(standing);
  if (!isBusy) before.current = standing;
  useEffect(() => {
    setLong(false);
    if (!isBusy) return undefined;
    const timer = setTimeout(() => setLong(true), BRIEF_MS);
    return () => clearTimeout(timer);
  }, [isBusy]);
  return isBusy && !isLong ? before.current : standing;
}

export function SyncPill(): JSX.Element {
  const app = useApp();
  const standing = useSyncIndicator();
  const losses = lossesText(app.losses);
  return (
    <button
      type="button"
      class={`pill pill-${standing.tone}`}
      data-testid="sync-pill"
      data-tone={standing.tone}
      title={losses === undefined ? standing.detail : `${standing.detail} ${losses}.`}
      onClick={() => app.openDialog({ kind: "sync" })}
    >
      <Icon name={ICONS[standing.tone]} size={16} />
      <span class="pill-label" role="status">
        {standing.label}
      </span>
      {losses !== undefined && (
        <span class="pill-mark" data-testid="losses">
          <span class="visually-hidden">{losses}</span>
        </span>
      )}
      {standing.fraction !== undefined && (
        <progress class="pill-bar" max={1} value={standing.fraction} aria-label="Sync progress" />
      )}
    </button>
  );
}

/**
 * Starts the app: opens the database that this browser shows, asks for its passcode if it has one,
 * and shows an error if it cannot be opened. Opens another database when the user signs in to
 * another account, or when the present one is gone.
 */
import type { ErrorCode, WarrenDatabase } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { App } from "./app.js";
import type { Toast } from "./app-context.js";
import { onOtherPlace, openPresent } from "./databases.js";
import { Locked } from "./locked.js";
import { codeOf, errorText } from "./sync/error-texts.js";
import { Icon } from "./ui/icons.js";

type BootState =
  | { readonly phase: "opening" | "locked"; readonly toast?: Toast | undefined }
  | { readonly phase: "open"; readonly db: WarrenDatabase; readonly toast?: Toast | undefined }
  | { readonly phase: "failed"; readonly error: unknown };

/** The codes for a changed file: another tab has erased it, or set another passcode. */
const OTHER_FILE: ReadonlySet<ErrorCode> = new Set(["deleted", "wrong_key"]);

export function Boot(): JSX.Element {
  const [state, setState] = useState<BootState>({ phase: "opening" });
  const openAgain = (toast?: Toast): void => setState({ phase: "opening", toast });
  const db = state.phase === "open" ? state.db : undefined;
  useEffect(() => {
    if (state.phase !== "opening") return;
    openPresent().then(
      (opened) => setState({ ...state, phase: "open", db: opened }),
      (error: unknown) =>
        setState(codeOf(error) === "wrong_key" ? { phase: "locked" } : { phase: "failed", error }),
    );
  }, [state]);
  useEffect(() => onOtherPlace(() => location.reload()), []);
  useEffect(
    () =>
      db?.status.subscribe(({ sync }) => {
        if (sync.phase === "failed" && OTHER_FILE.has(sync.error.code)) openAgain();
      }),
    [db],
  );
  switch (state.phase) {
    case "opening":
      return <div class="opening" aria-busy="true" />;
    case "locked":
      return (
        <Locked onOpen={(opened) => setState({ phase: "open", db: opened })} onReopen={openAgain} />
      );
    case "open":
      return (
        <App
          key={state.db.name}
          db={state.db}
          firstToast={state.toast}
          onOther={(other, toast) => setState({ phase: "open", db: other, toast })}
          onReopen={openAgain}
        />
      );
    case "failed":
      return <Failed error={state.error} />;
  }
}

function Failed({ error }: { readonly error: unknown }): JSX.Element {
  return (
    <main class="gate" data-testid="failed">
      <span class="empty-icon">
        <Icon name="warning" size={28} />
      </span>
      <h1>Plan can’t open</h1>
      <p role="alert">{errorText(error)}</p>
      <p class="muted">Your data hasn’t changed. Try reloading the page.</p>
      <button type="button" class="button button-primary" onClick={() => location.reload()}>
        Reload
      </button>
    </main>
  );
}

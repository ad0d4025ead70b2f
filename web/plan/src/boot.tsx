/**
 * From an empty page to the app: opens the database, asks for the passcode if it has one, and says
 * so when it cannot be opened.
 */
import type { Database } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { App } from "./app.js";
import { isProtected, openDatabase } from "./passcode.js";
import { codeOf, problemText } from "./sync/problems.js";
import { PasswordField, Problem } from "./ui/dialog.js";
import { useTask } from "./ui/hooks.js";
import { Icon } from "./ui/icons.js";

type State =
  | { readonly phase: "opening" | "locked" }
  | { readonly phase: "open"; readonly db: Database }
  | { readonly phase: "failed"; readonly error: unknown };

export function Boot(): JSX.Element {
  const [state, setState] = useState<State>({ phase: isProtected() ? "locked" : "opening" });
  useEffect(() => {
    if (state.phase !== "opening") return;
    openDatabase().then(
      (db) => setState({ phase: "open", db }),
      (error: unknown) =>
        setState(codeOf(error) === "wrong_key" ? { phase: "locked" } : { phase: "failed", error }),
    );
  }, [state.phase]);
  switch (state.phase) {
    case "opening":
      return <div class="opening" aria-busy="true" />;
    case "locked":
      return <Locked onOpen={(db) => setState({ phase: "open", db })} />;
    case "open":
      return <App db={state.db} />;
    case "failed":
      return <Failed error={state.error} />;
  }
}

function Locked({ onOpen }: { readonly onOpen: (db: Database) => void }): JSX.Element {
  const [passcode, setPasscode] = useState("");
  const task = useTask();
  const submit = (event: Event): void => {
    event.preventDefault();
    task.run(async () => onOpen(await openDatabase(passcode)));
  };
  const problem =
    codeOf(task.error) === "wrong_key" ? "This is not the passcode." : problemText(task.error);
  return (
    <main class="gate" data-testid="locked">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h1>Plan is locked</h1>
      <form class="form" onSubmit={submit} aria-busy={task.isBusy}>
        <Problem text={problem} />
        <PasswordField
          label="Passcode"
          autocomplete="current-password"
          autofocus
          value={passcode}
          onInput={setPasscode}
        />
        <button type="submit" class="button button-primary button-wide" disabled={task.isBusy}>
          {task.isBusy ? "Opening…" : "Open"}
        </button>
      </form>
    </main>
  );
}

function Failed({ error }: { readonly error: unknown }): JSX.Element {
  return (
    <main class="gate" data-testid="failed">
      <span class="empty-icon">
        <Icon name="warning" size={28} />
      </span>
      <h1>Plan can’t open</h1>
      <p role="alert">{problemText(error)}</p>
      <p class="muted">Nothing was changed. Loading the page again often helps.</p>
      <button type="button" class="button button-primary" onClick={() => location.reload()}>
        Load again
      </button>
    </main>
  );
}

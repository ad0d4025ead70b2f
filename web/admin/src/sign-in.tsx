/** What is shown to whom the server does not know: where the token goes, or how to get one. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";

import { Brand } from "./brand";

interface SignInProps {
  /** Why the last token was refused. */
  readonly problem: string | null;
  readonly onSignIn: (token: string) => void;
}

export function SignIn({ problem, onSignIn }: SignInProps): JSX.Element {
  const [token, setToken] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== "") {
      onSignIn(token.trim());
    }
  };
  return (
    <main class="narrow">
      <Brand />
      <h1>Sign in</h1>
      <p class="lead">
        This page shows how the server is, and nothing of what its users keep there. It wants the
        operator’s token.
      </p>
      <form onSubmit={submit} class="stack">
        <label for="token">Operator’s token</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          aria-invalid={problem !== null}
          aria-describedby={problem === null ? "token-hint" : "token-problem token-hint"}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        {problem !== null && (
          <p id="token-problem" class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" disabled={token.trim() === ""}>
          Sign in
        </button>
        <p id="token-hint" class="hint">
          It is the first line of the file that <code>warren serve --admin-token-file</code> names.
          This tab forgets it when it is closed.
        </p>
      </form>
    </main>
  );
}

interface NoTokenProps {
  readonly onRetry: () => void;
}

export function NoToken({ onRetry }: NoTokenProps): JSX.Element {
  return (
    <main class="narrow">
      <Brand />
      <h1>No operator’s token yet</h1>
      <p class="lead">
        This server was started without one, so nobody can sign in here. Make a token, and start the
        server with it:
      </p>
      <pre tabIndex={0} aria-label="Commands">
        {"head -c 32 /dev/urandom | base64 > admin-token.txt\n"}
        {"warren serve --admin-token-file admin-token.txt …"}
      </pre>
      <p class="hint">
        Keep the other options as they were. Whoever has the token may make accounts and see this
        page; it opens nobody’s data.
      </p>
      <button type="button" class="primary" onClick={onRetry}>
        Look again
      </button>
    </main>
  );
}

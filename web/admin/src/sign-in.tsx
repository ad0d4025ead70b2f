/** The view for users who are not signed in: the form for the token, or how to get one. */
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
        Server status only: this page never shows users’ data. Sign in with the admin token.
      </p>
      <form onSubmit={submit} class="stack">
        <label for="token">Admin token</label>
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
          It is the first line of the file passed to <code>warren serve --admin-token-file</code>.
          It is forgotten when you close this tab.
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
      <h1>Admin page disabled</h1>
      <p class="lead">
        The server was started without an admin token. Create one and restart the server:
      </p>
      <pre tabIndex={0} aria-label="Commands">
        {"head -c 32 /dev/urandom | base64 > admin-token.txt\n"}
        {"warren serve --admin-token-file admin-token.txt …"}
      </pre>
      <p class="hint">
        Keep your other options. The token allows creating accounts and using this page; it does
        not decrypt any user’s data.
      </p>
      <button type="button" class="primary" onClick={onRetry}>
        Check again
      </button>
    </main>
  );
}

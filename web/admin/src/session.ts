/**
 * The operator's session: the token, and the server's overview, requested once a second.
 *
 * Invariants:
 * - The token is in this tab's session storage and nowhere else; signing out deletes it.
 * - One request is pending at a time. After a failure, pauses double, up to half a minute.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { isEnabled, overview, AdminApiError } from "./admin-api";
import type { ServerOverview } from "./json-types";
import { EMPTY, withSample } from "./charts/chart-history";
import type { ChartHistory } from "./charts/chart-history";

const KEY = "warren-admin-token";
const STEP_MS = 1_000;
const PAUSE_MS_MAX = 30_000;

/** The state of the connection to the server. */
export type ConnectionState =
  | { readonly kind: "asking" }
  /** No token, or a wrong one; `problem` has the reason. */
  | { readonly kind: "signed-out"; readonly problem: string | null }
  /** The server has no admin token. */
  | { readonly kind: "disabled"; readonly problem: null }
  | { readonly kind: "live" }
  /** The server cannot be reached; `retryAt` is a time of the page's clock. */
  | { readonly kind: "away"; readonly problem: string; readonly retryAt: number };

export interface AdminSession {
  readonly token: string;
  readonly standing: ConnectionState;
  /** The newest answer; kept while the server cannot be reached. */
  readonly overview: ServerOverview | null;
  readonly history: ChartHistory;
  readonly signIn: (token: string) => void;
  readonly signOut: () => void;
  /** Sends a request now, instead of waiting. */
  readonly retry: () => void;
}

interface SessionState {
  readonly standing: ConnectionState;
  readonly overview: ServerOverview | null;
  readonly history: ChartHistory;
}

const NOTHING: SessionState = { standing: { kind: "asking" }, overview: null, history: EMPTY };

/** Returns the session of this tab: its token, and the server's answers. */
export function useSession(): AdminSession {
  const [token, setToken] = useState(() => sessionStorage.getItem(KEY) ?? "");
  const [round, setRound] = useState(0);
  const [known, setKnown] = useState<SessionState>(NOTHING);
  const failures = useRef(0);

  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const step = async (): Promise<void> => {
      const pause = await ask(token, failures, (change) => {
        if (!isOver) {
          setKnown(change);
        }
      });
      if (!isOver && pause !== null) {
        timer = setTimeout(() => void step(), pause);
      }
    };
    void step();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [token, round]);

  const signIn = useCallback((text: string) => {
    sessionStorage.setItem(KEY, text);
    failures.current = 0;
    setKnown(NOTHING);
    setToken(text);
    setRound((number) => number + 1);
  }, []);
  const signOut = useCallback(() => {
    sessionStorage.removeItem(KEY);
    setKnown({ ...NOTHING, standing: { kind: "signed-out", problem: null } });
    setToken("");
  }, []);
  const retry = useCallback(() => setRound((number) => number + 1), []);
  return { token, ...known, signIn, signOut, retry };
}

/** Sends one request. Returns the delay before the next one in milliseconds; null for none. */
async function ask(
  token: string,
  failures: { current: number },
  update: (change: (known: SessionState) => SessionState) => void,
): Promise<number | null> {
  try {
    if (token === "") {
      const kind = (await isEnabled()) ? "signed-out" : "disabled";
      update(() => ({ ...NOTHING, standing: { kind, problem: null } }));
      return null;
    }
    const answer = await overview(token);
    failures.current = 0;
    const sample = { at: performance.now(), overview: answer };
    update((known) => ({
      standing: { kind: "live" },
      overview: answer,
      history: withSample(known.history, sample),
    }));
    return STEP_MS;
  } catch (error) {
    const refused =
      error instanceof AdminApiError
        ? error
        : new AdminApiError("other", "Something went wrong on this page.");
    switch (refused.kind) {
      case "disabled":
        update(() => ({ ...NOTHING, standing: { kind: "disabled", problem: null } }));
        return null;
      case "token": {
        sessionStorage.removeItem(KEY);
        const problem = "Wrong admin token.";
        update(() => ({ ...NOTHING, standing: { kind: "signed-out", problem } }));
        return null;
      }
      case "wait":
      case "away":
      case "other": {
        const growing = Math.min(STEP_MS * 2 ** failures.current, PAUSE_MS_MAX);
        failures.current += 1;
        const pause = Math.max(growing, (refused.retryAfter ?? 0) * 1000);
        const retryAt = performance.now() + pause;
        const problem = refused.message;
        update((known) => ({ ...known, standing: { kind: "away", problem, retryAt } }));
        return pause;
      }
    }
  }
}

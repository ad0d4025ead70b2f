/** The page as a whole: the sign-in form, or the state of the server. */
import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";

import { Accounts } from "./accounts";
import type { ServerOverview, Readiness } from "./json-types";
import { Brand } from "./brand";
import { Charts } from "./charts/charts";
import { Tiles } from "./charts/tiles";
import { duration, several } from "./format";
import { Maintenance } from "./maintenance";
import { useSession } from "./session";
import type { AdminSession, ConnectionState } from "./session";
import { NoToken, SignIn } from "./sign-in";

export function Page(): JSX.Element {
  const session = useSession();
  const { standing, overview } = session;
  switch (standing.kind) {
    case "disabled":
      return <NoToken onRetry={session.retry} />;
    case "signed-out":
      return <SignIn problem={standing.problem} onSignIn={session.signIn} />;
    case "asking":
    case "live":
    case "away":
      return overview === null ? (
        <Waiting standing={standing} onRetry={session.retry} />
      ) : (
        <Dashboard session={session} overview={overview} />
      );
  }
}

interface WaitingProps {
  readonly standing: ConnectionState;
  readonly onRetry: () => void;
}

function Waiting({ standing, onRetry }: WaitingProps): JSX.Element {
  return (
    <main class="narrow">
      <Brand />
      <h1>{standing.kind === "away" ? "Server status unavailable" : "Connecting…"}</h1>
      {standing.kind === "away" && <Away standing={standing} onRetry={onRetry} />}
    </main>
  );
}

interface DashboardProps {
  readonly session: AdminSession;
  readonly overview: ServerOverview;
}

function Dashboard({ session, overview }: DashboardProps): JSX.Element {
  const { token, standing, history, retry } = session;
  const isLive = standing.kind === "live";
  return (
    <>
      <header class="top">
        <Brand />
        <p class="facts">
          <span class={isLive ? "pill ok" : "pill warn"}>
            <span class="dot" aria-hidden="true" />
            {isLive ? "Live" : "Not updating"}
          </span>
          <span>Version {overview.version}</span>
          <span>Up {duration(overview.uptime_ms)}</span>
          <span>
            {overview.storage === "postgres" ? "PostgreSQL" : "SQLite, one file per vault"}
          </span>
        </p>
        <button type="button" class="quiet" onClick={session.signOut}>
          Sign out
        </button>
      </header>
      {standing.kind === "away" && <Away standing={standing} onRetry={retry} />}
      <Problems readiness={overview.readiness} repaired={overview.maintenance.repaired_count} />
      <main class={isLive ? "" : "stale"}>
        <h1 class="hidden">Server status</h1>
        <Tiles overview={overview} />
        <Charts history={history} />
        <Accounts token={token} isLive={isLive} />
        <Maintenance token={token} storage={overview.storage} />
      </main>
    </>
  );
}

interface ProblemsProps {
  readonly readiness: Readiness;
  /** The number of damaged vaults that were quarantined. */
  readonly repaired: number;
}

/** Shows the most urgent problems: refused writes, or a damaged file. */
function Problems({ readiness, repaired }: ProblemsProps): JSX.Element | null {
  const vaults = readiness.poisoned_vaults_count;
  const damaged = readiness.damaged_vaults_count;
  const stalled = readiness.stalled_backups_count;
  const reasons = [
    readiness.disk_full &&
      "The data directory’s disk is full. No new data can be stored.",
    readiness.accounts_poisoned &&
      "Disk error on the accounts database: no devices can be added until it recovers.",
    vaults > 0 &&
      `Disk errors on ${several(vaults, "vault")}: read-only until recovered. ` +
        "See the log or /metrics.",
    readiness.accounts_damaged &&
      "The accounts database is damaged. Restore it from a backup and check the disk.",
    damaged > 0 &&
      `${several(damaged, "vault")} damaged again and not repaired (see the log). ` +
        "Check the disk, then move the older .damaged files away: " +
        "the server repairs a vault the next time it is used.",
    stalled > 0 &&
      "A backup has stalled in the middle of a file. It does not block the server. " +
        "End its process (see the log) and run the backup again.",
    repaired > 0 &&
      `${several(repaired, "damaged vault")} rebuilt; devices resend the missing data. ` +
        "The old files are kept as .damaged (see the log). Check the disk.",
  ].filter((reason) => reason !== false);
  if (reasons.length === 0) return null;
  return (
    <section class="banner warn" aria-label="Problems">
      <div role="alert">
        {reasons.map((reason) => (
          <p key={reason}>{reason}</p>
        ))}
      </div>
    </section>
  );
}

interface AwayProps {
  readonly standing: Extract<ConnectionState, { kind: "away" }>;
  readonly onRetry: () => void;
}

/** Counts down to the next attempt. */
function Away({ standing, onRetry }: AwayProps): JSX.Element {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const rest = Math.max(0, Math.ceil((standing.retryAt - now) / 1000));
  return (
    <section class="banner warn" aria-label="Connection">
      <p role="alert">
        <strong>{standing.problem}</strong> Data on this page may be out of date.
      </p>
      <p>{rest > 0 ? `Retrying in ${rest} s.` : "Retrying…"}</p>
      <button type="button" onClick={onRetry}>
        Retry now
      </button>
    </section>
  );
}

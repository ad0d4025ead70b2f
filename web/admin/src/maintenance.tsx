/** Maintenance on demand, and its result. */
import { useState } from "preact/hooks";
import type { JSX } from "preact";

import { maintain, AdminApiError } from "./admin-api";
import type { MaintenanceReport, ServerOverview } from "./json-types";
import { bytes, shortDuration, several } from "./format";

export type MaintenanceRequestState =
  | { readonly kind: "none" }
  | { readonly kind: "running" }
  | { readonly kind: "done"; readonly report: MaintenanceReport }
  | { readonly kind: "failed"; readonly problem: string };

/** Returns the state of one maintenance button, and the function that starts the maintenance. */
export function useMaintenance(
  token: string,
  login: string | null,
): readonly [MaintenanceRequestState, () => void] {
  const [outcome, setOutcome] = useState<MaintenanceRequestState>({ kind: "none" });
  const start = (): void => {
    if (outcome.kind === "running") {
      return;
    }
    setOutcome({ kind: "running" });
    maintain(token, login).then(
      (report) => setOutcome({ kind: "done", report }),
      (error: unknown) => {
        const problem =
          error instanceof AdminApiError ? error.message : "Something went wrong on this page.";
        setOutcome({ kind: "failed", problem });
      },
    );
  };
  return [outcome, start];
}

interface MaintenanceProps {
  readonly token: string;
  readonly storage: ServerOverview["storage"];
}

export function Maintenance({ token, storage }: MaintenanceProps): JSX.Element {
  const [outcome, start] = useMaintenance(token, null);
  return (
    <section class="panel" aria-labelledby="maintenance">
      <div class="panel-head">
        <h2 id="maintenance">Maintenance</h2>
        <button type="button" onClick={start} aria-disabled={outcome.kind === "running"}>
          Run maintenance
        </button>
      </div>
      <p class="hint">
        {storage === "sqlite"
          ? "Idle vaults are maintained automatically. Closed vaults are skipped, because their " +
            "keys are known only while the server serves one of their devices."
          : "Vaults are in PostgreSQL, which runs its own autovacuum. The button maintains only " +
            "the accounts database."}
      </p>
      <p role="status" class={outcome.kind === "failed" ? "problem" : "result"}>
        {describeMaintenance(outcome)}
      </p>
    </section>
  );
}

/** Describes the outcome of a maintenance request in a sentence. */
export function describeMaintenance(outcome: MaintenanceRequestState): string {
  switch (outcome.kind) {
    case "none":
      return "";
    case "running":
      return "Running…";
    case "failed":
      return outcome.problem;
    case "done":
      return reported(outcome.report);
  }
}

function reported(report: MaintenanceReport): string {
  const { files_count: files, closed_count: closed } = report;
  const { remaining_count: remaining, failed_count: failed } = report;
  const { truncated_wals_count: wals, returned_pages_count: pages } = report;
  const freed = report.before_bytes - report.after_bytes;
  const done = [
    wals > 0 ? `${several(wals, "WAL")} truncated` : "",
    pages > 0 ? `${several(pages, "page")} released` : "",
    report.compacted_count > 0 ? `${several(report.compacted_count, "file")} compacted` : "",
    freed > 0 ? `${bytes(freed)} freed` : "",
  ].filter((text) => text !== "");
  const took = report.duration_ms < 1 ? "under 1 ms" : shortDuration(report.duration_ms);
  const parts = [
    `Checked ${several(files, "file")} in ${took}`,
    ...(done.length === 0 ? ["nothing to do"] : done),
  ];
  const rest = [
    closed > 0 ? `${several(closed, "closed vault")} skipped.` : "",
    remaining > 0 ? `${several(remaining, "file")} not processed in time; run again.` : "",
    failed > 0 ? `${several(failed, "file")} failed; see the server log.` : "",
  ];
  return [`${parts.join(", ")}.`, ...rest].filter((text) => text !== "").join(" ");
}

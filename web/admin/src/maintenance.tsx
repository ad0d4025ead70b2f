/** Maintenance on demand, and what it did. */
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

/** What one button does, and what became of it. */
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
        const problem = error instanceof AdminApiError ? error.message : "This page has a fault.";
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
          Maintain open vaults now
        </button>
      </div>
      <p class="hint">
        {storage === "sqlite"
          ? "Vaults get it by themselves when nobody writes to them. One that is not open stays " +
            "as it is: its key is known only while a device is served."
          : "The vaults are in PostgreSQL, whose own autovacuum looks after them. Here it is the " +
            "accounts’ file that gets it."}
      </p>
      <p role="status" class={outcome.kind === "failed" ? "problem" : "result"}>
        {describeMaintenance(outcome)}
      </p>
    </section>
  );
}

/** What became of it, as one would say it. */
export function describeMaintenance(outcome: MaintenanceRequestState): string {
  switch (outcome.kind) {
    case "none":
      return "";
    case "running":
      return "Under way…";
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
    wals > 0 ? `${several(wals, "WAL")} cut` : "",
    pages > 0 ? `${several(pages, "page")} given back` : "",
    report.compacted_count > 0 ? `${several(report.compacted_count, "file")} written anew` : "",
    freed > 0 ? `${bytes(freed)} freed` : "",
  ].filter((text) => text !== "");
  const took = report.duration_ms < 1 ? "under 1 ms" : shortDuration(report.duration_ms);
  const parts = [
    `${several(files, "file")} looked after in ${took}`,
    ...(done.length === 0 ? ["nothing was due"] : done),
  ];
  const rest = [
    closed > 0 ? `${several(closed, "vault")} not open.` : "",
    remaining > 0 ? `${several(remaining, "file")} left for want of time: do it again.` : "",
    failed > 0 ? `${several(failed, "file")} failed: the server’s log says why.` : "",
  ];
  return [`${parts.join(", ")}.`, ...rest].filter((text) => text !== "").join(" ");
}

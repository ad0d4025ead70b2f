/**
 * The operator's calls of the server (docs/formats/3-http-api.md), with their answers' types.
 *
 * Always so: whatever goes wrong is a {@link AdminApiError}, told apart by its kind; nothing else
 * is thrown. The token goes into a header and nowhere else.
 */

export interface ServerOverview {
  readonly version: string;
  readonly storage: "sqlite" | "postgres";
  readonly server_time_ms: number;
  readonly uptime_ms: number;
  readonly accounts_count: number;
  readonly devices_count: number;
  readonly vaults_count: number;
  readonly files: FileTotals | null;
  readonly open_vaults: OpenVaultTotals;
  readonly readiness: Readiness;
  readonly maintenance: { readonly repaired_count: number };
  readonly connections_count: number;
  readonly connections_max: number;
  readonly subscribers_count: number;
  readonly subscribers_max: number;
  readonly requests_count: number;
  readonly failed_requests_count: number;
  readonly syncs: SyncTotals;
  readonly messages: {
    readonly stored_count: number;
    readonly known_count: number;
    readonly sent_count: number;
  };
  readonly transactions: { readonly committed_count: number; readonly flushes_count: number };
}

export interface FileTotals {
  readonly count: number;
  readonly file_bytes: number;
  readonly wal_bytes: number;
}

export interface OpenVaultTotals {
  readonly count: number;
  readonly file_bytes: number;
  readonly free_bytes: number;
  readonly wal_bytes: number;
  readonly fragmentation_ratio_max: number;
  readonly wal_bytes_max: number;
  readonly longest_read_ms: number;
  readonly cache_bytes: number;
}

/** What keeps the server from taking writes. */
export interface Readiness {
  readonly ready: boolean;
  readonly disk_full: boolean;
  readonly accounts_poisoned: boolean;
  readonly poisoned_vaults_count: number;
  readonly accounts_damaged: boolean;
  readonly damaged_vaults_count: number;
  readonly stalled_backups_count: number;
}

/** `counts[i]` syncs took no longer than `bounds_ms[i]`; the last one, longer than all bounds. */
export interface SyncTotals {
  readonly count: number;
  readonly bounds_ms: readonly number[];
  readonly counts: readonly number[];
}

export interface AccountListEntry {
  readonly login: string;
  readonly created_ms: number;
  readonly devices_count: number;
  readonly vaults_count: number;
  readonly open_vaults_count: number;
  readonly file_bytes: number | null;
  readonly wal_bytes: number | null;
  readonly fragmentation_ratio: number | null;
  readonly last_seen_ms: number | null;
  readonly last_changed_ms: number | null;
  readonly limits: {
    readonly messages_max: number | null;
    readonly bytes_max: number | null;
    readonly devices_max: number | null;
  };
}

export interface AccountList {
  readonly accounts: readonly AccountListEntry[];
  readonly total_count: number;
  readonly cursor: number;
  readonly more: boolean;
}

export type AccountSortKey = "login" | "created" | "devices" | "file_bytes";

export interface AccountListQuery {
  readonly search: string;
  readonly sort: AccountSortKey;
  readonly descending: boolean;
  readonly cursor: number;
  readonly limit: number;
}

export interface MaintenanceReport {
  readonly files_count: number;
  readonly closed_count: number;
  readonly remaining_count: number;
  readonly failed_count: number;
  readonly truncated_wals_count: number;
  readonly returned_pages_count: number;
  readonly compacted_count: number;
  readonly before_bytes: number;
  readonly after_bytes: number;
  readonly duration_ms: number;
}

/** `away`: no answer, or none that is the server's own. */
export type AdminErrorKind = "away" | "disabled" | "token" | "wait" | "other";

export class AdminApiError extends Error {
  constructor(
    readonly kind: AdminErrorKind,
    message: string,
    /** Seconds to wait, if the server says so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** Longer than the server takes for anything but maintenance. */
const ANSWER_MS_MAX = 10_000;
const MAINTENANCE_MS_MAX = 60_000;

/** Whether the server has an operator's token, and so anything to sign in to. */
export async function isEnabled(): Promise<boolean> {
  return (await ask<{ readonly enabled: boolean }>("", "")).enabled;
}

export function overview(token: string): Promise<ServerOverview> {
  return ask<ServerOverview>(token, "/overview");
}

export function accounts(token: string, selection: AccountListQuery): Promise<AccountList> {
  const { search, sort, descending, cursor, limit } = selection;
  const query = new URLSearchParams({
    search,
    sort,
    descending: String(descending),
    cursor: String(cursor),
    limit: String(limit),
  });
  return ask<AccountList>(token, `/accounts?${query.toString()}`);
}

/** Of one account's open vaults, or of all that are open. */
export function maintain(token: string, login: string | null): Promise<MaintenanceReport> {
  return ask<MaintenanceReport>(token, "/maintenance", login === null ? {} : { login });
}

async function ask<T>(token: string, call: string, body?: object): Promise<T> {
  const headers = new Headers({ accept: "application/json" });
  if (token !== "") {
    headers.set("authorization", `Bearer ${token}`);
  }
  const request: RequestInit = { headers, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    headers.set("content-type", "application/json");
    request.method = "POST";
    request.body = JSON.stringify(body);
  }
  request.signal = AbortSignal.timeout(body === undefined ? ANSWER_MS_MAX : MAINTENANCE_MS_MAX);
  let response: Response;
  let text: string;
  try {
    response = await fetch(`/v1/admin${call}`, request);
    text = await response.text();
  } catch {
    throw new AdminApiError("away", "The server does not answer.");
  }
  const answer = parse(text);
  if (response.ok && answer !== null) {
    return answer as T;
  }
  throw toAdminApiError(response, answer);
}

function toAdminApiError(response: Response, answer: unknown): AdminApiError {
  const error = (answer as { error?: { code?: string; message?: string } } | null)?.error;
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  const message = error?.message ?? `The server answered with status ${response.status}.`;
  switch (error?.code) {
    case "admin_disabled":
      return new AdminApiError("disabled", message);
    case "invalid_token":
      return new AdminApiError("token", message);
    case "too_many_attempts":
      return new AdminApiError("wait", message, retryAfter);
    case undefined:
    case "unavailable":
      return new AdminApiError("away", message, retryAfter);
    default:
      return new AdminApiError("other", message, retryAfter);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

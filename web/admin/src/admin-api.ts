/**
 * The operator's API calls (docs/reference/formats/3-http-api.md), with the types of their
 * answers.
 *
 * Invariant: every failure is an {@link AdminApiError} with a kind; nothing else is thrown. The
 * token is sent in a header and nowhere else.
 */

import type { ErrorCode } from "@warren/client";
import type { AccountList, AdminStatus, MaintenanceReport, ServerOverview } from "./json-types";

export type AccountSortKey = "login" | "created" | "devices" | "file_bytes";

export interface AccountListQuery {
  readonly search: string;
  readonly sort: AccountSortKey;
  readonly descending: boolean;
  readonly cursor: number;
  readonly limit: number;
}

/** The kind of a failure; `away` means no answer, or one that is not the server's own. */
export type AdminErrorKind = "away" | "disabled" | "token" | "wait" | "other";

export class AdminApiError extends Error {
  constructor(
    readonly kind: AdminErrorKind,
    message: string,
    /** The number of seconds to wait, if the server gives one. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** The time limit of a request, longer than the server needs for anything but maintenance. */
const ANSWER_MS_MAX = 10_000;
const MAINTENANCE_MS_MAX = 60_000;

/** Whether the server has an admin token, so that it is possible to sign in. */
export async function isEnabled(): Promise<boolean> {
  return (await ask<AdminStatus>("", "")).enabled;
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

/** Runs maintenance on one account's open vaults, or on all open vaults. */
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
    throw new AdminApiError("away", "The server is not responding.");
  }
  const answer = parse(text);
  if (response.ok && answer !== null) {
    return answer as T;
  }
  throw toAdminApiError(response, answer);
}

function toAdminApiError(response: Response, answer: unknown): AdminApiError {
  const error = (answer as { error?: { code?: ErrorCode; message?: string } } | null)?.error;
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  const message = error?.message ?? `The server responded with status ${response.status}.`;
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

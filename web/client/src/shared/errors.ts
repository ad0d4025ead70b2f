/**
 * From whatever was thrown to a {@link WarrenError}, and to what travels between tabs.
 *
 * The wasm module throws `Error`s with a `code`; the browser throws `DOMException`s; and a full
 * disk comes in several disguises, which are one code here.
 */
import { WarrenError, type ErrorInfo } from "../api.js";

/** The codes of this package; those of the server and of the file pass through. */
export type ClientErrorCode =
  | "busy"
  | "cancelled"
  | "closed"
  | "deleted"
  | "engine_unavailable"
  | "internal"
  | "invalid_argument"
  | "leader_lost"
  | "origin_not_allowed"
  | "result_lost"
  | "schema_changed"
  | "schema_too_new"
  | "server_not_configured"
  | "storage_full"
  | "timeout"
  | "transaction_ended"
  | "transaction_required"
  | "unexpected_response"
  | "unreachable"
  | "version_mismatch";

export function clientError(code: ClientErrorCode, message: string): WarrenError {
  return new WarrenError(code, message);
}

const STORAGE_FULL_PATTERN = /disk is full|SQLITE_FULL|QuotaExceeded|quota|no space/i;

/** What is told of a failure: its code and its words. */
export function toErrorInfo(thrown: unknown): ErrorInfo {
  if (thrown instanceof WarrenError) {
    return { code: thrown.code, message: thrown.message };
  }
  const name = field(thrown, "name");
  const message = field(thrown, "message") ?? String(thrown);
  const code = field(thrown, "code");
  if (name === "QuotaExceededError" || (isLocal(code) && STORAGE_FULL_PATTERN.test(message))) {
    return { code: "storage_full", message: `there is no room for this: ${message}` };
  }
  if (name === "AbortError") {
    return { code: "cancelled", message: "it was cancelled" };
  }
  return { code: code ?? "internal", message };
}

export function toWarrenError(thrown: unknown): WarrenError {
  if (thrown instanceof WarrenError) {
    return thrown;
  }
  const info = toErrorInfo(thrown);
  return new WarrenError(info.code, info.message);
}

/** Whether the wasm module ended by a trap: what it holds is not to be trusted any more. */
export function isTrap(thrown: unknown): boolean {
  return thrown instanceof WebAssembly.RuntimeError;
}

function isLocal(code: string | undefined): boolean {
  return code === undefined || code === "sqlite_error" || code.startsWith("storage");
}

function field(thrown: unknown, name: "name" | "code" | "message"): string | undefined {
  if (typeof thrown !== "object" || thrown === null) {
    return undefined;
  }
  const value: unknown = Reflect.get(thrown, name);
  return typeof value === "string" ? value : undefined;
}

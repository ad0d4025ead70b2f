/**
 * From whatever was thrown to a {@link WarrenError}, and to what travels between tabs.
 *
 * The wasm module throws `Error`s with a `code`, the browser throws `DOMException`s with a `name`.
 * Neither's message decides anything.
 */
import { WarrenError, type ErrorCode, type ErrorInfo } from "../api.js";

/**
 * A code that the server or the wasm module gave as text. A newer server's, which is not in the
 * type, stays what it is: it is shown as it came, and any code in its place would be a wrong one.
 */
export function toErrorCode(text: string): ErrorCode {
  return text as ErrorCode;
}

/** What is told of a failure: its code and its words. */
export function toErrorInfo(thrown: unknown): ErrorInfo {
  if (thrown instanceof WarrenError) {
    return { code: thrown.code, message: thrown.message };
  }
  const message = field(thrown, "message") ?? String(thrown);
  switch (field(thrown, "name")) {
    case "QuotaExceededError":
      return { code: "disk_full", message: `storage quota exceeded: ${message}` };
    case "AbortError":
      return { code: "cancelled", message: "the call was canceled" };
  }
  const code = field(thrown, "code");
  return { code: code === undefined ? "internal" : toErrorCode(code), message };
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

function field(thrown: unknown, name: "name" | "code" | "message"): string | undefined {
  if (typeof thrown !== "object" || thrown === null) {
    return undefined;
  }
  const value: unknown = Reflect.get(thrown, name);
  return typeof value === "string" ? value : undefined;
}

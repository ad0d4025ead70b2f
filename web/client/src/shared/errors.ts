/**
 * Converts any thrown value to a {@link WarrenError}, and to the form that is sent between tabs.
 *
 * The wasm module throws `Error`s with a `code`, the browser throws `DOMException`s with a `name`.
 * Their messages decide nothing.
 */
import { WarrenError, type ErrorCode, type ErrorInfo } from "../api.js";

/**
 * Converts a code that the server or the wasm module gave as text. A code of a newer server, which
 * is not in the type, stays unchanged: it is shown as received, since any other code would be
 * wrong.
 */
export function toErrorCode(text: string): ErrorCode {
  return text as ErrorCode;
}

/** Returns the code and the message of a failure. */
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

/** Whether the wasm module trapped, so that its memory can no longer be trusted. */
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

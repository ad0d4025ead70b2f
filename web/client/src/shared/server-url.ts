/** The form of a server's address. */
import { WarrenError } from "../api.js";

/**
 * Returns the one form that a server's address has in files: without a slash at its end. A path is
 * one of the page's origin.
 */
export function toServerUrl(server: string, origin: string): string {
  const isPath = server.startsWith("/");
  if (!isPath && !/^https?:\/\//i.test(server)) {
    const rule = "a server's URL begins with http:// or https://";
    throw new WarrenError("invalid_argument", `${rule}: "${server}"`);
  }
  try {
    return new URL(server, origin).href.replace(/\/+$/, "");
  } catch {
    throw new WarrenError("invalid_argument", `not the URL of a server: "${server}"`);
  }
}

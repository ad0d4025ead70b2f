/** The form of a server's address. */
import { WarrenError } from "../api.js";

/**
 * Returns the one form that a server's address has in files: without a slash at its end. A path is
 * one of the page's origin.
 */
export function toServerUrl(server: string, origin: string): string {
  const isUrlOrPath = /^(https?:\/)?\//i.test(server) && URL.canParse(server, origin);
  const url = isUrlOrPath ? new URL(server, origin) : undefined;
  if (url === undefined || url.username + url.password + url.search + url.hash !== "") {
    const rule = "a server's URL begins with http:// or https:// and has no user name and no query";
    throw new WarrenError("invalid_argument", `${rule}: "${server}"`);
  }
  return url.href.replace(/\/+$/, "");
}

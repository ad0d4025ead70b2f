/**
 * Distinguishes two failures of servers in another origin: the browser hides from a page whether
 * such a server is away, or runs without allowing requests from this page.
 *
 * A request whose answer the page cannot see succeeds in the second case only, so one is sent, and
 * its success tells the two apart. A page cannot distinguish a server that is away from one whose
 * certificate the browser does not trust, so the message mentions both.
 */
import { WarrenError } from "../../api.js";
import { toErrorInfo } from "../../shared/errors.js";

/** The path of the probe; any address works. */
const PROBED_PATH = "/healthz";
const PROBE_MS_MAX = 5_000;

/** Waits for `work`; if that cannot reach the server, finds out why. */
export async function reaching<T>(server: string | undefined, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    const isElsewhere = server !== undefined && new URL(server).origin !== location.origin;
    const { code, message } = toErrorInfo(thrown);
    if (code !== "unreachable" || !isElsewhere) throw thrown;
    if (await answers(server)) throw originNotAllowed(server);
    if (!server.startsWith("https:")) throw thrown;
    const advice = `if the server is running, open ${server} in a tab: the browser may not trust `
      + "its certificate";
    throw new WarrenError("unreachable", `${message}; ${advice}`);
  }
}

function originNotAllowed(server: string): WarrenError {
  const { origin } = location;
  const fact = `the server at ${server} does not allow requests from ${origin}`;
  const message = `${fact}: start it with \`--allow-origin ${origin}\``;
  return new WarrenError("origin_not_allowed", message);
}

async function answers(server: string): Promise<boolean> {
  const signal = AbortSignal.timeout(PROBE_MS_MAX);
  const init: RequestInit = { mode: "no-cors", credentials: "omit", cache: "no-store", signal };
  const probed = fetch(server.replace(/\/+$/, "") + PROBED_PATH, init);
  return probed.then(
    () => true,
    () => false,
  );
}

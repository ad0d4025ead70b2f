/**
 * Distinguishes two failures of servers in another origin: the browser hides from a page whether
 * such a server is away, or runs without allowing requests from this page.
 *
 * A request whose answer the page cannot see succeeds in the second case only, so one is sent, and
 * its success tells the two apart.
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
    const isUnreachable = toErrorInfo(thrown).code === "unreachable";
    if (!isUnreachable || !isElsewhere || !(await answers(server))) {
      throw thrown;
    }
    const { origin } = location;
    const fact = `the server at ${server} does not allow requests from ${origin}`;
    const message = `${fact}: start it with \`--allow-origin ${origin}\``;
    throw new WarrenError("origin_not_allowed", message);
  }
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

/** The calls about accounts and devices: JSON over HTTP, Format 3. */
import { WarrenError, type Device, type PasswordChange } from "./api.js";
import { failure } from "./errors.js";
import { toDevice, type ClientJson } from "./json.js";
import { reaching } from "./origins.js";

/** A password hash waits for its turn on the server, for 20 s at most. */
const REQUEST_MS_MAX = 60_000;

export interface Remote {
  readonly server: string;
  readonly token?: string;
}

interface Request {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: Readonly<Record<string, string | boolean>>;
}

export async function makeAccount(server: string, login: string, password: string): Promise<void> {
  const body = { login, password };
  await ask({ server }, { method: "POST", path: "/v1/accounts", body });
}

export async function changePassword(
  remote: Remote,
  change: PasswordChange & { readonly login: string },
): Promise<void> {
  const { login, password, newPassword, revokeOthers = false } = change;
  const body = { login, password, new_password: newPassword, revoke_others: revokeOthers };
  // The device that asks is the one that stays.
  await ask(remote, { method: "PUT", path: "/v1/accounts/password", body });
}

export async function listDevices(remote: Remote): Promise<Device[]> {
  const answer = await ask(remote, { method: "GET", path: "/v1/clients" });
  const { clients } = (await answer.json()) as { clients: ClientJson[] };
  return clients.map(toDevice);
}

export async function revokeDevice(remote: Remote, id: string): Promise<void> {
  const path = `/v1/clients/${encodeURIComponent(id)}`;
  await ask(remote, { method: "DELETE", path });
}

async function ask(remote: Remote, request: Request): Promise<Response> {
  const headers = new Headers({ accept: "application/json" });
  if (remote.token !== undefined) {
    headers.set("authorization", `Bearer ${remote.token}`);
  }
  const init: RequestInit = {
    method: request.method,
    headers,
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  };
  if (request.body !== undefined) {
    headers.set("content-type", "application/json");
    init.body = JSON.stringify(request.body);
  }
  const url = remote.server.replace(/\/+$/, "") + request.path;
  const answer = await reaching(remote.server, reach(url, init));
  if (!answer.ok) {
    throw await refusal(answer);
  }
  return answer;
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw failure("unreachable", `the server cannot be reached: ${why}`);
  }
}

/** Format 4. */
async function refusal(answer: Response): Promise<WarrenError> {
  try {
    const { error } = (await answer.json()) as { error: { code: string; message: string } };
    return new WarrenError(error.code, error.message);
  } catch {
    const words = "something between this page and the server answered in its place";
    return failure("intermediary", `${words}, with status ${answer.status}`);
  }
}

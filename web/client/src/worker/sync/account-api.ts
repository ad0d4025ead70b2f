/** The API calls for accounts and devices: JSON over HTTP, Format 3. */
import { WarrenError, type DeviceInfo, type ChangePasswordOptions } from "../../api.js";
import { toErrorCode } from "../../shared/errors.js";
import type { DeviceJson } from "../../shared/json-types.js";
import { toDevice } from "../../shared/wire-json.js";
import { reaching } from "./origins.js";

/** The request time-out: a password hash waits on the server for up to 20 s. */
const REQUEST_MS_MAX = 60_000;

export interface ServerAccess {
  readonly server: string;
  readonly token?: string;
}

interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: Readonly<Record<string, string | boolean>>;
}

export async function createAccount(
  server: string,
  login: string,
  password: string,
): Promise<void> {
  const body = { login, password };
  await callApi({ server }, { method: "POST", path: "/v1/accounts", body });
}

export async function changePassword(
  remote: ServerAccess,
  change: ChangePasswordOptions & { readonly login: string },
): Promise<void> {
  const { login, password, newPassword, revokeOthers = false } = change;
  const body = { login, password, new_password: newPassword, revoke_others: revokeOthers };
  // The server keeps the device that sends this request.
  await callApi(remote, { method: "PUT", path: "/v1/accounts/password", body });
}

export async function listDevices(remote: ServerAccess): Promise<DeviceInfo[]> {
  const answer = await callApi(remote, { method: "GET", path: "/v1/devices" });
  const { devices } = (await answer.json()) as { devices: DeviceJson[] };
  return devices.map(toDevice);
}

export async function revokeDevice(remote: ServerAccess, id: string): Promise<void> {
  const path = `/v1/devices/${encodeURIComponent(id)}`;
  await callApi(remote, { method: "DELETE", path });
}

async function callApi(remote: ServerAccess, request: ApiRequest): Promise<Response> {
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
  const answer = await reaching(remote.server, fetchOrUnreachable(url, init));
  if (!answer.ok) {
    throw await toApiError(answer);
  }
  return answer;
}

async function fetchOrUnreachable(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new WarrenError("unreachable", `cannot reach the server: ${why}`);
  }
}

/** Parses an error response (Format 4). */
async function toApiError(answer: Response): Promise<WarrenError> {
  try {
    const { error } = (await answer.json()) as { error: { code: string; message: string } };
    return new WarrenError(toErrorCode(error.code), error.message);
  } catch {
    const words = "something between this page and the server answered in the server's place";
    return new WarrenError("unexpected_response", `${words}, with status ${answer.status}`);
  }
}

/**
 * A server for one test: the binary on a data directory that is removed afterwards.
 *
 * It can be stopped, killed and started again; it keeps its address and its data.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/** The password of every account that {@link WarrenServer.account} creates. */
export const PASSWORD = "correct horse battery";

/** The token that the operator sends. */
export const ADMIN_TOKEN = "the operator's secret";

export interface WarrenServer {
  readonly address: string;
  /** A folder for files of the test; it contains the server's data, too. */
  readonly folder: string;
  /** Creates an account, and returns its login. */
  account(login: string): Promise<string>;
  /** Runs `warren` with these arguments, and returns its output. */
  warren(...args: readonly string[]): Promise<string>;
  /** Syncs a file with an account, with `warren sync`. */
  sync(file: string, login: string): Promise<string>;
  /** Stops the server as the system does when it wants a program to end. */
  stop(): Promise<void>;
  /** Kills the server as a power loss does. */
  kill(): Promise<void>;
  /** Starts the server again, after {@link stop} or {@link kill}. */
  start(): Promise<void>;
  /** Ends the server and removes its data. */
  remove(): Promise<void>;
}

/** Starts `warren serve` with further arguments. */
export async function startServer(args: readonly string[] = []): Promise<WarrenServer> {
  const program = binary();
  const folder = await mkdtemp(join(tmpdir(), "warren-web-"));
  const passwordFile = join(folder, "password.txt");
  const tokenFile = join(folder, "token.txt");
  await writeFile(passwordFile, PASSWORD);
  await writeFile(tokenFile, ADMIN_TOKEN);
  let listen = "127.0.0.1:0";
  let address = "";
  let running: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const own = ["serve", "--json", "--log", "warn", "--open-registration", "--listen", listen];
    const files = ["--data", join(folder, "data"), "--admin-token-file", tokenFile];
    const child = spawn(program, [...own, ...files, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    running = child;
    address = await addressOf(child);
    listen = new URL(address).host;
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = running;
    running = undefined;
    if (child === undefined) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  const warren = async (...given: readonly string[]): Promise<string> =>
    (await promisify(execFile)(program, given)).stdout;

  await start();
  return {
    get address() {
      return address;
    },
    folder,
    account: (login) => makeAccount(address, login),
    warren,
    sync: (file, login) => {
      const account = ["--login", login, "--password-file", passwordFile];
      return warren("sync", file, "--server", address, ...account);
    },
    start,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    remove: async () => {
      await end("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function binary(): string {
  const path = process.env["WARREN_BINARY"];
  if (path === undefined) throw new Error("`cargo xtask browser` says where the binary is");
  return path;
}

async function addressOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("its output is piped");
  for await (const line of createInterface({ input: child.stdout })) {
    return (JSON.parse(line) as { readonly address: string }).address;
  }
  throw new Error("the server ended before it listened");
}

async function makeAccount(address: string, login: string): Promise<string> {
  const answer = await fetch(`${address}/v1/accounts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ login, password: PASSWORD }),
  });
  if (answer.status !== 201) throw new Error(`no account: ${await answer.text()}`);
  return login;
}

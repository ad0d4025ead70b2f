/**
 * Builds apps like those of users: the code of `@warren/client`'s README, in a folder with the
 * package as npm packs it; then builds, starts and opens them.
 *
 * An app has its bundler as a link to the folder where `.ci/setup.sh tools` has installed it, and
 * nothing else of this repository.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, extname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";

/**
 * The build folder, relative to the repository's root, where `cargo xtask browser` runs the tests.
 */
const MADE = "target/web";
const APPS = join(MADE, "apps");
const INSTALLED = resolve("target/bundlers/node_modules");

const ENVIRONMENT = {
  ...process.env,
  NO_COLOR: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  PATH: [dirname(process.execPath), process.env["PATH"]].join(delimiter),
};

export interface App {
  readonly folder: string;
  /** Runs a program of an installed package, to its end. */
  run(program: string, ...args: readonly string[]): Promise<void>;
  /** Starts a program that prints the address that it serves; it runs until the app is removed. */
  serve(program: string, ...args: readonly string[]): Promise<string>;
  /** Serves one of the app's folders as any web server does. */
  serveFolder(name: string): Promise<string>;
  remove(): Promise<void>;
}

/** Returns the README's code blocks in this language, in their order. */
export function readme(language: string): Promise<readonly string[]> {
  return codeBlocks("web/client/README.md", language);
}

/** Returns a document's code blocks in this language, in their order. */
export async function codeBlocks(path: string, language: string): Promise<readonly string[]> {
  const text = await readFile(path, "utf8");
  const blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)];
  return blocks.flatMap(([, found, code]) => (found === language && code ? [code] : []));
}

/**
 * Creates an app. `imported` are the packages that the app itself imports in addition to
 * `@warren/client`; with `all`, every installed package is copied, for programs that do not follow
 * links.
 */
export async function newApp(
  name: string,
  files: Readonly<Record<string, string>>,
  imported: readonly string[] | "all" = [],
): Promise<App> {
  const folder = resolve(APPS, name);
  const packages = join(folder, "node_modules");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (imported === "all") {
    await copyPackages(packages);
  } else {
    await mkdir(packages);
    const links = [".bin", ...imported];
    await Promise.all(links.map((link) => symlink(join(INSTALLED, link), join(packages, link))));
  }
  await install(packages);
  const manifest = { name, private: true, type: "module" };
  for (const [file, text] of Object.entries({
    "package.json": JSON.stringify(manifest),
    ...files,
  })) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return appIn(folder, imported === "all" ? packages : INSTALLED);
}

/** Copies the packages, as hard links if they are on the same disk. */
async function copyPackages(to: string): Promise<void> {
  const command = promisify(execFile);
  try {
    await command("cp", ["--archive", "--link", INSTALLED, to]);
  } catch {
    await rm(to, { recursive: true, force: true });
    await cp(INSTALLED, to, { recursive: true, verbatimSymlinks: true });
  }
}

async function install(packages: string): Promise<void> {
  const archives = (await readdir(MADE)).filter((file) => /^warren-client-.*\.tgz$/.test(file));
  const [archive] = archives;
  if (archive === undefined || archives.length > 1) {
    throw new Error(`\`cargo xtask web\` makes one archive, and there is: ${archives}`);
  }
  const to = join(packages, "@warren/client");
  await mkdir(to, { recursive: true });
  const unpack = ["-xzf", join(MADE, archive), "-C", to, "--strip-components=1"];
  await promisify(execFile)("tar", unpack);
}

function appIn(folder: string, installed: string): App {
  const endings: (() => Promise<void>)[] = [];
  /** Returns the path of a package's file (`vite/bin/vite.js`), or of a program of the machine. */
  const path = (program: string): string =>
    program.includes("/") ? resolve(installed, program) : program;
  return {
    folder,
    async run(program, ...args) {
      const options = { cwd: folder, env: ENVIRONMENT };
      await promisify(execFile)(path(program), args, options);
    },
    async serve(program, ...args) {
      // A process group of its own: some programs start further ones.
      const stdio: ["ignore", "pipe", "inherit"] = ["ignore", "pipe", "inherit"];
      const options = { cwd: folder, env: ENVIRONMENT, detached: true, stdio };
      const child = spawn(path(program), args, options);
      endings.push(() => end(child));
      const address = await addressOf(child);
      await untilServed(address, child);
      return address;
    },
    async serveFolder(name) {
      const server = createServer((asked, answer) => {
        const at = new URL(asked.url ?? "/", "http://here").pathname;
        const file = join(folder, name, at.endsWith("/") ? `${at}index.html` : at);
        answer.setHeader("content-type", KINDS[extname(file)] ?? "text/plain");
        readFile(file).then(
          (bytes) => answer.end(bytes),
          () => answer.writeHead(404).end(),
        );
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      endings.push(async () => {
        server.closeAllConnections();
        server.close();
      });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    },
    async remove() {
      await Promise.all(endings.splice(0).map((ending) => ending()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const KINDS: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
};

async function addressOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("its output is piped");
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    const address = /http:\/\/(localhost|127\.0\.0\.1):\d+/.exec(line)?.[0];
    if (address !== undefined) {
      // Its further output is not needed, and must not fill the pipe.
      child.stdout.resume();
      return `${address}/`;
    }
  }
  throw new Error(`it ended without serving:\n${lines.join("\n")}`);
}

const POLL_MS = 30;
/** A minute: a busy machine compiles slowly. */
const POLLS_MAX = 2_000;

/**
 * Waits for the page: some programs compile it only when it is first requested, and Parcel prints
 * the address before it listens.
 */
async function untilServed(address: string, child: ChildProcess): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await (await fetch(address)).text();
      return;
    } catch (error) {
      if (child.exitCode !== null || attempt === POLLS_MAX) throw error;
      await setTimeout(POLL_MS);
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  process.kill(-child.pid, "SIGTERM");
  await ended;
}

/**
 * Checks that the TypeScript types of the engine's and the server's JSON match those generated
 * from the same Rust types as the JSON.
 *
 * `WARREN_RECORD=1 cargo xtask browser json-types` writes the files again.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compile, type JSONSchema } from "json-schema-to-typescript";
import { startServer, type WarrenServer } from "./server.js";

/** The schemas, by name. */
type Definitions = Readonly<Record<string, JSONSchema>>;

const BANNER = [
  "/**",
  " * TypeScript types of JSON values, generated from Rust types by web/tests/json-types.test.ts.",
  " * Change the Rust types, then run WARREN_RECORD=1 cargo xtask browser json-types.",
  " */",
].join("\n");

let server: WarrenServer;
before(async () => {
  server = await startServer();
});
after(() => server.remove());

test("the client's types are those of the engine and of the devices' calls", async () => {
  const document = JSON.parse(await server.warren("json-schema")) as { $defs: Definitions };
  const names = [
    "ConflictJson",
    "DeletedRowJson",
    "DeviceJson",
    "HiddenRowJson",
    "HistoryEntryJson",
    "ReplicaStatusJson",
    "SyncReportJson",
    "SyncStatusJson",
  ];
  const types = rename(document.$defs, "Json");
  await check("client/src/shared/json-types.ts", types, names);
  // A file of its own: with the codes, the other one would be too long.
  await check("client/src/shared/error-code-json.ts", types, ["ErrorCodeJson"]);
});

test("the admin page's types are those of the operator's calls", async () => {
  const answer = await fetch(`${server.address}/v1/openapi.json`);
  const document = (await answer.json()) as { components: { schemas: Definitions } };
  const names = ["AccountList", "AdminStatus", "MaintenanceReport", "ServerOverview"];
  await check("admin/src/json-types.ts", document.components.schemas, names);
});

/** Adds a suffix to all names, so that they differ from those of the API's types. */
function rename(definitions: Definitions, suffix: string): Definitions {
  const text = JSON.stringify(definitions).replace(/("\$ref":"[^"]*)/g, `$1${suffix}`);
  const renamed = Object.entries(JSON.parse(text) as Definitions);
  return Object.fromEntries(renamed.map(([name, schema]) => [name + suffix, schema]));
}

/** Asserts that a file contains these types and those that they refer to, or writes the file. */
async function check(file: string, all: Definitions, names: readonly string[]): Promise<void> {
  const path = join("web", file);
  const wanted = reachable(names, all);
  const code = await toTypeScript(wanted);
  if (process.env["WARREN_RECORD"] !== undefined) {
    await writeFile(path, code);
  }
  const hint = `${file} is out of date: run \`WARREN_RECORD=1 cargo xtask browser json-types\``;
  assert.equal(await readFile(path, "utf8"), code, hint);
}

/** Returns the named schemas, and those that they refer to. */
function reachable(names: readonly string[], all: Definitions): Definitions {
  const found = new Map<string, JSONSchema>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    const schema = all[name];
    assert.ok(schema, `no type ${name}`);
    found.set(name, schema);
    for (const [, below = ""] of JSON.stringify(schema).matchAll(/"\$ref":"[^"]*\/(\w+)"/g)) {
      visit(below);
    }
  };
  names.forEach(visit);
  return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function toTypeScript(definitions: Definitions): Promise<string> {
  const names = Object.keys(definitions);
  const schemas = names.map((name) => [name, toStrict(definitions[name])] as const);
  const references = names.map((name) => [name, { $ref: `#/$defs/${name}` }] as const);
  const root: JSONSchema = {
    type: "object",
    properties: Object.fromEntries(references),
    $defs: Object.fromEntries(schemas) as Definitions,
  };
  const code = await compile(root, "Root", {
    additionalProperties: false,
    bannerComment: BANNER,
    style: { printWidth: 100 },
  });
  // Received objects are read-only; and a comment of one line stays on that line.
  return code
    .replace(/^( *)\/\*\*\n *\* (.*)\n *\*\/$/gm, (comment, indent: string, text: string) => {
      const line = `${indent}/** ${text} */`;
      return line.length <= 100 ? line : comment;
    })
    .replace(/^export interface Root \{\n[^]*?\n\}\n/m, "")
    .replace(/\n+$/, "\n")
    .replace(/^( +)(\w+): /gm, "$1readonly $2: ")
    .replace(/: (\w+\[\])/g, ": readonly $1");
}

/**
 * Marks every key as required, since every key of an answer is present, even if its value may be
 * null. Drops descriptions next to references, which would otherwise become types of their own.
 */
function toStrict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toStrict);
  if (typeof schema !== "object" || schema === null) return schema;
  if ("$ref" in schema) return { $ref: String(schema.$ref).replace(/^.*\//, "#/$defs/") };
  const parts = Object.entries(schema).map(([key, part]) => [key, toStrict(part)] as const);
  const own = Object.fromEntries(parts) as { properties?: object };
  if (own.properties === undefined) return own;
  return { ...own, required: Object.keys(own.properties), additionalProperties: false };
}

/**
 * A reporter for Node's test runner in the format of Rust's, so that `cargo xtask` reads both
 * alike: a line of JSON when a test begins and when it ends.
 */
import { inspect } from "node:util";

/** The events of each test's begin and end, in the format of `libtest --format json`. */
const KINDS = { "test:start": "started", "test:pass": "ok", "test:fail": "failed" };

const SUMMARY = /^[a-z_]+ [\d.]+$/;

/** @param {AsyncIterable<import("node:test/reporters").TestEvent>} events */
export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    // Errors outside of any test; the summary's lines consist of a name and a number.
    if (type === "test:diagnostic" && !SUMMARY.test(data.message)) yield `${data.message}\n`;
    const event = KINDS[type];
    if (event === undefined || data.details?.type === "suite") continue;
    const line = { type: "test", event, name: data.name };
    if (data.skip !== undefined || data.todo !== undefined) line.event = "ignored";
    if (event !== "started") line.exec_time = data.details.duration_ms / 1000;
    if (event === "failed") line.stdout = inspect(data.details.error, { depth: 5 });
    yield `${JSON.stringify(line)}\n`;
  }
}

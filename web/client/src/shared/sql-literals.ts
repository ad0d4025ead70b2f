/**
 * SQL literals as the replica writes them (`crates/replica/src/sql_value.rs`), converted to values
 * and back.
 */
import { WarrenError, type SqlValue } from "../api.js";

const LITERAL = new RegExp(
  [
    String.raw`[\s,]*(?:(NULL|NaN)`,
    String.raw`CAST\(x'([0-9a-f]*)' AS TEXT\)`,
    String.raw`x'([0-9a-f]*)'`,
    String.raw`'((?:[^']|'')*)'`,
    String.raw`(-?(?:inf|\d[\d.e+-]*)))`,
  ].join("|"),
  "gy",
);

/** Parses literals that are separated by commas. */
export function fromLiterals(text: string): SqlValue[] {
  const values: SqlValue[] = [];
  LITERAL.lastIndex = 0;
  while (LITERAL.lastIndex < text.length) {
    const found = LITERAL.exec(text);
    if (found === null) {
      throw new WarrenError("internal", `not an SQL literal: ${text}`);
    }
    const [, isNull, garbled, digits, letters, number] = found;
    if (isNull !== undefined) {
      values.push(null);
    } else if (garbled !== undefined) {
      // Decoded like the text of a query's result.
      values.push(new TextDecoder().decode(fromHex(garbled)));
    } else if (digits !== undefined) {
      values.push(fromHex(digits));
    } else if (letters !== undefined) {
      values.push(letters.replaceAll("''", "'"));
    } else {
      values.push(fromNumber(number ?? ""));
    }
  }
  return values;
}

function fromHex(digits: string): Uint8Array {
  const pairs = digits.match(/../g) ?? [];
  return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
}

function fromNumber(text: string): number | bigint {
  if (text.endsWith("inf")) {
    return text.startsWith("-") ? -Infinity : Infinity;
  }
  const number = Number(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(number) ? BigInt(text) : number;
}

export function toLiteral(value: SqlValue): string {
  switch (typeof value) {
    case "string":
      return `'${value.replaceAll("'", "''")}'`;
    case "boolean":
      return value ? "1" : "0";
    case "number":
    case "bigint":
      return String(value);
    case "object":
      return value === null ? "NULL" : `x'${toHex(value)}'`;
  }
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Packed rows cross between wasm, worker and tab as a few arrays for many rows. The tab decodes
 * them, so that the worker, which all tabs share, spends no time on creating objects.
 */
import { WarrenError, type RowOf, type SqlValue } from "../api.js";
import type { WasmOwned, PackedRows } from "./wasm-engine.js";

const NULL = 0;
const NUMBER = 1;
const TEXT = 2;
const BLOB = 3;
const INTEGER = 4;

/**
 * Returns row objects with the columns' names. If two columns have the same name, the later one
 * wins.
 */
export function unpack<T extends RowOf<T>>(packed: PackedRows): T[] {
  const next = reader(packed);
  const width = packed.columns.length;
  const count = width === 0 ? 0 : packed.kinds.length / width;
  const rows: T[] = [];
  for (let row = 0; row < count; row += 1) {
    const cells: Record<string, SqlValue> = {};
    for (const column of packed.columns) {
      cells[column] = next();
    }
    rows.push(cells as T);
  }
  return rows;
}

/** Returns a function that reads the cells one after the other. */
function reader(packed: PackedRows): () => SqlValue {
  const { kinds, numbers, integers, texts, textLengths, blobs, blobLengths } = packed;
  const at = { cell: 0, number: 0, integer: 0, text: 0, textAt: 0, blob: 0, blobAt: 0 };
  return () => {
    const kind = kinds[at.cell++];
    switch (kind) {
      case NULL:
        return null;
      case NUMBER:
        return numbers[at.number++] ?? 0;
      case INTEGER:
        return integers[at.integer++] ?? 0n;
      case TEXT: {
        const from = at.textAt;
        at.textAt += textLengths[at.text++] ?? 0;
        return texts.slice(from, at.textAt);
      }
      case BLOB: {
        const from = at.blobAt;
        at.blobAt += blobLengths[at.blob++] ?? 0;
        return blobs.slice(from, at.blobAt);
      }
      default:
        throw new WarrenError("internal", `unknown cell kind: ${String(kind)}`);
    }
  };
}

/** Copies rows out of the wasm module's memory, and frees that memory. */
export function copyOutOfWasm(rows: PackedRows & WasmOwned): PackedRows {
  const { columns, kinds, numbers, integers, texts } = rows;
  const { textLengths, blobs, blobLengths, changes } = rows;
  rows.free?.();
  return {
    columns, kinds, numbers, integers, texts, textLengths, blobs, blobLengths, changes,
  };
}

/** Whether both hold the same columns and rows. */
export function equalRows(a: PackedRows, b: PackedRows): boolean {
  return (
    a.texts === b.texts &&
    equalItems(a.columns, b.columns) &&
    equalItems(a.kinds, b.kinds) &&
    equalItems(a.numbers, b.numbers) &&
    equalItems(a.integers, b.integers) &&
    equalItems(a.textLengths, b.textLengths) &&
    equalItems(a.blobs, b.blobs) &&
    equalItems(a.blobLengths, b.blobLengths)
  );
}

function equalItems<T>(a: ArrayLike<T>, b: ArrayLike<T>): boolean {
  if (a.length !== b.length) {
    return false;
  }
  for (let at = 0; at < a.length; at += 1) {
    if (a[at] !== b[at]) {
      return false;
    }
  }
  return true;
}

/** Lists the buffers of an answer that can be transferred to the tab instead of copied. */
export function transfersOf(value: unknown): ArrayBuffer[] {
  if (typeof value !== "object" || value === null) {
    return [];
  }
  if ("packed" in value) {
    return transfersOf(value.packed);
  }
  return "kinds" in value ? transfers(value as PackedRows) : [];
}

function transfers(packed: PackedRows): ArrayBuffer[] {
  const { kinds, numbers, integers, textLengths, blobs, blobLengths } = packed;
  const buffers = new Set<ArrayBuffer>();
  for (const array of [kinds, numbers, integers, textLengths, blobs, blobLengths]) {
    const { buffer } = array;
    // A view of a part of a buffer is copied: the rest of the buffer belongs to other data.
    if (buffer instanceof ArrayBuffer && buffer.byteLength === array.byteLength) {
      buffers.add(buffer);
    }
  }
  return [...buffers];
}

/** Returns rows as JSON for the idempotency table, or `undefined` if they exceed `charsMax`. */
export function packedToJson(packed: PackedRows, charsMax: number): string | undefined {
  const { columns, texts, changes } = packed;
  if (packed.kinds.length + texts.length + packed.blobs.length * 4 > charsMax) {
    return undefined;
  }
  return JSON.stringify({
    columns,
    texts,
    changes,
    kinds: [...packed.kinds],
    // JSON has no Infinity.
    numbers: [...packed.numbers].map(String),
    integers: [...packed.integers].map(String),
    textLengths: [...packed.textLengths],
    blobs: [...packed.blobs],
    blobLengths: [...packed.blobLengths],
  });
}

interface PackedRowsJson {
  readonly columns: string[];
  readonly texts: string;
  readonly changes: number;
  readonly kinds: number[];
  readonly numbers: string[];
  readonly integers: string[];
  readonly textLengths: number[];
  readonly blobs: number[];
  readonly blobLengths: number[];
}

/** Parses the output of {@link packedToJson}. */
export function packedFromJson(json: string): PackedRows {
  const parsed = JSON.parse(json) as PackedRowsJson;
  return {
    columns: parsed.columns,
    texts: parsed.texts,
    changes: parsed.changes,
    kinds: Uint8Array.from(parsed.kinds),
    numbers: Float64Array.from(parsed.numbers, Number),
    integers: BigInt64Array.from(parsed.integers, BigInt),
    textLengths: Uint32Array.from(parsed.textLengths),
    blobs: Uint8Array.from(parsed.blobs),
    blobLengths: Uint32Array.from(parsed.blobLengths),
  };
}

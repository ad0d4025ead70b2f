/**
 * Decodes the bytes of a file to text.
 *
 * - Tried in this order: the encoding that a byte order mark names, UTF-8, Windows-1252 (which
 *   spreadsheets on Windows write in Western Europe and America, where every byte is a letter).
 * - A file that is not text is refused, with the name of its kind if that is known.
 */
import { UnreadableFile } from "./unreadable.js";

export type TextEncodingName = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

export interface DecodedText {
  readonly text: string;
  readonly encoding: TextEncodingName;
}

/** The first bytes of files of other kinds. */
const SIGNATURES: readonly (readonly [string, string])[] = [
  ["PK\x03\x04", "an Excel workbook or a ZIP archive"],
  ["\xd0\xcf\x11\xe0", "an Excel workbook"],
  ["%PDF", "a PDF"],
  ["SQLite format 3\0", "a database"],
  ["\x89PNG", "a picture"],
  ["\xff\xd8\xff", "a picture"],
  ["GIF8", "a picture"],
  ["\x1f\x8b", "a compressed archive"],
  ["{\\rtf", "a Word document"],
];

/** The beginnings of texts that do not contain a table. */
const OTHER_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/^\s*<(!doctype|html)\b/i, "a web page"],
  [/^\s*<\?xml\b/i, "an XML file"],
  [/^\s*(\{\s*["}]|\[\s*[{\]])/, "a JSON file"],
];

export function decodeFile(bytes: Uint8Array): DecodedText {
  const beginning = String.fromCharCode(...bytes.subarray(0, 16));
  const known = SIGNATURES.find(([signature]) => beginning.startsWith(signature));
  if (known !== undefined) throw new UnreadableFile({ kind: "foreign", what: known[1] });
  const decoded = decode(bytes, beginning);
  const other = OTHER_TEXTS.find(([pattern]) => pattern.test(decoded.text));
  if (other !== undefined) throw new UnreadableFile({ kind: "foreign", what: other[1] });
  if (isBinary(decoded.text)) throw new UnreadableFile({ kind: "foreign", what: undefined });
  return decoded;
}

function decode(bytes: Uint8Array, beginning: string): DecodedText {
  if (beginning.startsWith("\xff\xfe")) return decodeAs(bytes, "utf-16le");
  if (beginning.startsWith("\xfe\xff")) return decodeAs(bytes, "utf-16be");
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { text, encoding: "utf-8" };
  } catch {
    return decodeAs(bytes, "windows-1252");
  }
}

function decodeAs(bytes: Uint8Array, encoding: TextEncodingName): DecodedText {
  return { text: new TextDecoder(encoding).decode(bytes), encoding };
}

/**
 * Limits on control characters: a text file may contain a stray one, but pictures are full of
 * them.
 */
const CONTROL_SHARE_MAX = 1 / 100;
const CONTROLS_ALLOWED = 2;

function isBinary(text: string): boolean {
  const sample = text.slice(0, 65_536);
  if (sample.includes("\0")) return true;
  const controls = sample.match(/[\u0001-\u0008\u000e-\u001f\u007f-\u009f]/g)?.length ?? 0;
  return controls > CONTROLS_ALLOWED && controls > sample.length * CONTROL_SHARE_MAX;
}

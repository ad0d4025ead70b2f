/**
 * The reason why a file cannot be imported: the only error that reading a file throws.
 */

export type FileFlaw =
  /** A quotation mark that is opened in this line and not closed at the end of a field. */
  | { readonly kind: "openQuote"; readonly line: number }
  /** A file of another kind, with the kind's name if it is known: "an Excel workbook". */
  | { readonly kind: "foreign"; readonly what: string | undefined }
  | { readonly kind: "empty" };

export class UnreadableFile extends Error {
  readonly flaw: FileFlaw;

  constructor(flaw: FileFlaw) {
    super(`unreadable: ${flaw.kind}`);
    this.flaw = flaw;
  }
}

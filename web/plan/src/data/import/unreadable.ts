/**
 * Why nothing can be taken from a file: the only error that reading one throws.
 */

export type FileFlaw =
  /** A quotation mark that is opened in this line and not closed where a field ends. */
  | { readonly kind: "openQuote"; readonly line: number }
  /** Another kind of file, named where it is known: "an Excel workbook". */
  | { readonly kind: "foreign"; readonly what: string | undefined }
  | { readonly kind: "empty" };

export class UnreadableFile extends Error {
  readonly flaw: FileFlaw;

  constructor(flaw: FileFlaw) {
    super(`unreadable: ${flaw.kind}`);
    this.flaw = flaw;
  }
}

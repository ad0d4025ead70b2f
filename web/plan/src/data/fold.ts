/**
 * Folds texts for comparison: without case and without the marks on letters.
 */

/**
 * Matches the marks of Latin, Greek and Cyrillic letters, the optional vowels of Hebrew and
 * Arabic, and variation selectors, which ask for a sign with or without colors.
 */
const MARKS =
  /[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\ufe0e\ufe0f]/g;

export function fold(text: string): string {
  return text.normalize("NFKD").replace(MARKS, "").toLowerCase().replaceAll("ς", "σ");
}

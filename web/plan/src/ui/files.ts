/**
 * Saves files for the user.
 */

/** Adds a file to the browser's downloads. */
export function saveFile(name: string, type: string, content: string | Uint8Array): void {
  const part = typeof content === "string" ? content : new Uint8Array(content);
  const url = URL.createObjectURL(new Blob([part], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

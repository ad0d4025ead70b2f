/** Returns the path of the installed Chromium. */
export function findBrowser(chromium: { executablePath(): string }): string;

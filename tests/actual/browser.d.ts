/** Which Chromium there is: the path of its program. */
export function findBrowser(chromium: { executablePath(): string }): string;

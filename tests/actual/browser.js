// Finds the installed Chromium, for all programs that drive a browser.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

// Returns the path of the browser: the one that `.ci/setup.sh` finds, or else Playwright's own.
export function findBrowser(chromium) {
  const names = ['chromium', 'google-chrome', 'chromium-browser'];
  const name = names.find((name) => spawnSync(name, ['--version']).status === 0);
  if (name) return spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim();
  const installed = chromium.executablePath();
  if (!existsSync(installed)) throw new Error('no Chromium: `make test` installs it');
  return installed;
}

// Which Chromium there is, for everything that drives one.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

// As `.ci/setup.sh` looks for it, or else the one that Playwright has installed.
export function findBrowser(chromium) {
  const names = ['chromium', 'google-chrome', 'chromium-browser'];
  const name = names.find((name) => spawnSync(name, ['--version']).status === 0);
  if (name) return spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim();
  const installed = chromium.executablePath();
  if (!existsSync(installed)) throw new Error('no Chromium: `make test` installs it');
  return installed;
}

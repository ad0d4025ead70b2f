// The lab's driver of better-sqlite3-multiple-ciphers as the published benchmark had it first,
// so that what a newer library changes is not taken for what a newer Node changes. The plan and
// the answer are Warren's Format 12.

import { createRequire } from 'node:module';
import Database from 'better-sqlite3-multiple-ciphers';
import { open } from '../node/better-sqlite3.js';
import { drive } from '../node/plan.js';

const driver = 'better-sqlite3-multiple-ciphers';
const { version } = createRequire(import.meta.url)(`${driver}/package.json`);

await drive({ driver, version, open: (path) => open(Database, path) });

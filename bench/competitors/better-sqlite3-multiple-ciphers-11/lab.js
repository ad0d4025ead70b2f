// The lab's driver of the version of better-sqlite3-multiple-ciphers that the published benchmark
// used first, so that effects of a newer library are not mistaken for effects of a newer Node. The
// plan and the answer are Warren's Format 12.

import { createRequire } from 'node:module';
import Database from 'better-sqlite3-multiple-ciphers';
import { open } from '../node/better-sqlite3.js';
import { drive } from '../node/plan.js';

const driver = 'better-sqlite3-multiple-ciphers';
const { version } = createRequire(import.meta.url)(`${driver}/package.json`);

await drive({ driver, version, open: (path) => open(Database, path) });

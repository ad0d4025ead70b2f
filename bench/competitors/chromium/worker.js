// Carries out one plan in a worker.

import { work } from './work.js';

self.onmessage = async ({ data }) => self.postMessage(await work(data.library, data.plan));

// A worker that carries out one plan.

import { work } from './work.js';

self.onmessage = async ({ data }) => self.postMessage(await work(data.library, data.plan));

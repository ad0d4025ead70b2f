// Carries a plan out with a library in a worker, or in this page if the library is one that pages
// call.

import { work } from './work.js';

export async function run(library, plan) {
  if (library.endsWith('-tab')) return work(library, plan);
  const worker = new Worker('/worker.js', { type: 'module' });
  const answer = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ library, plan });
  });
  worker.terminate();
  return answer;
}

// Compresses files with Brotli, using Node's own zlib: `node brotli.mjs FROM TO [FROM TO…]`.
import { readFile, rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

// The best quality, and the largest window that every browser supports.
const params = {
  [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
  [constants.BROTLI_PARAM_LGWIN]: 22,
};

async function compress(from, to) {
  const bytes = await readFile(from);
  const sized = { ...params, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  await writeFile(`${to}.part`, await promisify(brotliCompress)(bytes, { params: sized }));
  await rename(`${to}.part`, to);
}

const files = process.argv.slice(2);
const pairs = Array.from({ length: files.length / 2 }, (_, at) => files.slice(2 * at, 2 * at + 2));
await Promise.all(pairs.map(([from, to]) => compress(from, to)));

/**
 * `@warren/client` gives a web page ordinary SQL that syncs.
 *
 * Invariant: `tab/` runs in the page, `worker/` in the worker, and neither imports from the other.
 * `shared/` has the messages between them and the formats of values, and imports from neither.
 */
export * from "./api.js";
export { open } from "./tab/database.js";
export { deleteDatabase } from "./tab/delete-database.js";
export { fragment, identifier } from "./tab/sql-fragment.js";

/** `@warren/client`: ordinary SQL that syncs, in a web page. */
export * from "./api.js";
export { open } from "./database.js";
export { deleteDatabase } from "./erasing.js";
export type { ClientErrorCode } from "./errors.js";
export { identifier } from "./identifier.js";

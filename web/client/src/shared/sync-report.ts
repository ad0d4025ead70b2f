/** What a sync reports; the types are a part of `api.ts`, which passes them on. */

export interface SyncReport {
  readonly sent: number;
  readonly received: number;
  /**
   * Whether both sides hold the same set. What the tables do not show of it is counted in `held`,
   * `refusedInAll`, `setAside` and `unknown`.
   */
  readonly equal: boolean;
  readonly repaired: boolean;
  /** Messages that were received, are kept, and are not shown. */
  readonly refused: number;
  /** So it is with this many that the file keeps, of this sync and earlier ones. */
  readonly refusedInAll: number;
  /** Messages that are not sent, since the server calls their timestamps invalid. */
  readonly setAside: number;
  /** Tables, and columns as `table.column`, that other devices have and this file has not. */
  readonly unknown: readonly string[];
  /** Messages of which something was erased for good (`warren erase`), on any device. */
  readonly erased: number;
  /** Why pages of the file may hold what was erased, if that is so; the next sync tries again. */
  readonly unscrubbed?: string;
  /**
   * Edits that lost to others made without knowing of them, in rows where such edits met in this
   * sync: `WarrenDatabase.conflicts` lists them.
   */
  readonly lost: number;
  /** Rows that are live and not shown: they collide with newer ones, or do not fit their table. */
  readonly held: number;
  /**
   * New rows of this device whose key SQLite had chosen and another row has: they
   * got another key, and what refers to them by foreign keys followed.
   */
  readonly renumbered: readonly {
    readonly table: string;
    readonly from: number;
    readonly to: number;
  }[];
  /**
   * New rows of this device that were equal to another device's but for a key that SQLite had
   * chosen, and of which only one could be shown: they became one row, and what refers to them
   * followed.
   */
  readonly joined: SyncReport["renumbered"];
  /** What the server has lost and still lacks after this sync. */
  readonly serverLoss?: ServerLoss;
}

/** Changes that the server cannot read any more, because its disk was damaged. Devices that have
 * them send them again. */
export interface ServerLoss {
  /** When the server found out, in milliseconds since 1970. */
  readonly repairedMs: number;
  /** How many are still missing; absent if the server does not know. */
  readonly missingCount?: number;
  /** Names of other devices that have not synced since, and may have them: twenty at most. */
  readonly devicesAway: readonly string[];
}

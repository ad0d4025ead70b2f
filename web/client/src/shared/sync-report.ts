/**
 * The reports of syncing: about a sync, and by the server about the account. These types are part
 * of `api.ts`, which exports them.
 */

/** The progress of a sync. */
export interface SyncProgress {
  readonly stage: "received" | "sent" | "applied";
  /** The number of changes that have passed this stage. */
  readonly done: number;
  /** The number of all changes of this stage; 0 for `applied`, where the total is unknown. */
  readonly total: number;
}

/** The report of one sync. */
export interface SyncReport {
  /** The number of changes that the server did not have. */
  readonly sentCount: number;
  /** The number of changes that this device did not have. */
  readonly receivedCount: number;
  /**
   * Whether this device and the server have the same changes. The tables may not show all of them
   * (`hiddenRowsCount`, `rejectedCount`, `missingTables`), and some may not be sent
   * (`setAsideCount`).
   */
  readonly inSync: boolean;
  /** Whether the two sides had to compare their sets of changes to find the differences. */
  readonly reconciled: boolean;
  /**
   * The number of changes that this sync received and could not apply, such as undecryptable ones.
   */
  readonly newRejectedCount: number;
  /** The number of all such changes in the file, from this sync and earlier ones. */
  readonly rejectedCount: number;
  /** The number of changes that are not sent, since the server calls their timestamps invalid. */
  readonly setAsideCount: number;
  /** Tables, and columns as `table.column`, that other devices have but this file lacks. */
  readonly missingTables: readonly string[];
  /**
   * The number of changes of which something was permanently erased (`warren erase`), on any
   * device.
   */
  readonly erasedCount: number;
  /** Why pages of the file may still hold erased data, if so; the next sync tries again. */
  readonly unscrubbed?: string;
  /** The number of conflicts that this sync found; `WarrenDatabase.conflicts` lists them. */
  readonly conflictsCount: number;
  /** The number of rows that exist but cannot be shown; `WarrenDatabase.hiddenRows` lists them. */
  readonly hiddenRowsCount: number;
  /**
   * New rows of this device whose key SQLite had assigned and another row already had. They got
   * another key, and references by foreign keys followed.
   */
  readonly renumberedRows: readonly RenumberedRow[];
  /**
   * New rows of this device that differed from another device's row only in a key that SQLite had
   * assigned, where a UNIQUE constraint allows one of the two. The two became one row, and
   * references followed.
   */
  readonly mergedRows: readonly RenumberedRow[];
  /** The changes that the server has lost and still lacks after this sync. */
  readonly serverLoss?: ServerLoss;
}

/** A row that got another key. */
export interface RenumberedRow {
  readonly table: string;
  readonly oldKey: number;
  readonly newKey: number;
}

/** Changes that the server can no longer read, because its disk was damaged. Devices that have them
 * send them again. */
export interface ServerLoss {
  /** The time at which the server found the damage, in milliseconds since 1970. */
  readonly repairedMs: number;
  /** The number of changes that are still missing; absent if the server does not know. */
  readonly missingCount?: number;
  /**
   * Names of other devices, at most twenty, that have not synced since and may have the changes.
   */
  readonly devicesAway: readonly string[];
}

/** A device of the account, as in the response to `GET /v1/devices` (Format 3). */
export interface DeviceInfo {
  readonly id: string;
  readonly name: string;
  readonly isCurrent: boolean;
  /** The time of its last sync, in milliseconds since 1970; 0 if never. */
  readonly lastSeenMs: number;
  /** The time of its registration, in milliseconds since 1970. */
  readonly createdMs: number;
  /** The number of changes that it had not sent when it last synced. */
  readonly unsentCount: number;
  /** The number of changes that the server has and this device has not downloaded. */
  readonly pendingDownloadCount: number;
}

/** A comparison of this device, the server, and the account's devices. */
export interface SyncStatus {
  /** The number of changes that the server has. */
  readonly serverMessagesCount: number;
  /** The number of all changes: those on the server, and those that this device has yet to send. */
  readonly totalMessagesCount: number;
  readonly pendingUploadCount: number;
  readonly pendingDownloadCount: number;
  /** Whether server and device have the same changes, and none is waiting. */
  readonly inSync: boolean;
  /** All devices of the account, including this one. */
  readonly devices: readonly DeviceInfo[];
}

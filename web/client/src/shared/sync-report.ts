/**
 * What syncing reports: a sync itself, and the server about the account. These types are a part of
 * `api.ts`, which exports them.
 */

/** How far a sync is. */
export interface SyncProgress {
  readonly stage: "received" | "sent" | "applied";
  /** Changes that are through this stage. */
  readonly done: number;
  /** All changes of this stage; 0 for `applied`, where nobody knows how many there will be. */
  readonly total: number;
}

/** What a sync did. */
export interface SyncReport {
  /** Changes that the server did not have. */
  readonly sentCount: number;
  /** Changes that this device did not have. */
  readonly receivedCount: number;
  /**
   * Whether this device and the server have the same changes. The tables may not show all of them
   * (`hiddenRowsCount`, `rejectedCount`, `missingTables`), and some may not be sent
   * (`setAsideCount`).
   */
  readonly inSync: boolean;
  /** Whether the two had to compare their sets of changes to find out what differs. */
  readonly reconciled: boolean;
  /** Changes that this sync received and could not apply, such as undecryptable ones. */
  readonly newRejectedCount: number;
  /** All such changes that the file keeps, from this sync and earlier ones. */
  readonly rejectedCount: number;
  /** Changes that are not sent, since the server calls their timestamps invalid. */
  readonly setAsideCount: number;
  /** Tables, and columns as `table.column`, that other devices have and this file has not. */
  readonly missingTables: readonly string[];
  /** Changes of which something was erased for good (`warren erase`), on any device. */
  readonly erasedCount: number;
  /** Why pages of the file may hold what was erased, if that is so; the next sync tries again. */
  readonly unscrubbed?: string;
  /** Conflicts that this sync found: `WarrenDatabase.conflicts` lists them. */
  readonly conflictsCount: number;
  /** Rows that exist but cannot be shown: `WarrenDatabase.hiddenRows` lists them. */
  readonly hiddenRowsCount: number;
  /**
   * New rows of this device whose key SQLite had chosen and another row already had. They got
   * another key, and references by foreign keys followed.
   */
  readonly renumberedRows: readonly RenumberedRow[];
  /**
   * New rows of this device that differed from another device's row in nothing but a key that
   * SQLite had chosen, where a UNIQUE constraint allows one of the two. They became one row, and
   * references followed.
   */
  readonly mergedRows: readonly RenumberedRow[];
  /** What the server has lost and still lacks after this sync. */
  readonly serverLoss?: ServerLoss;
}

/** A row that got another key. */
export interface RenumberedRow {
  readonly table: string;
  readonly oldKey: number;
  readonly newKey: number;
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

/** A device of the account, as `GET /v1/devices` has it (Format 3). */
export interface DeviceInfo {
  readonly id: string;
  readonly name: string;
  readonly isCurrent: boolean;
  /** When it last synced, in milliseconds since 1970; 0 if never. */
  readonly lastSeenMs: number;
  /** When it was registered, in milliseconds since 1970. */
  readonly createdMs: number;
  /** Changes that it had not sent when it last synced. */
  readonly unsentCount: number;
  /** Changes that the server has and this device has not downloaded. */
  readonly pendingDownloadCount: number;
}

/** This device, the server, and the account's devices compared. */
export interface SyncStatus {
  /** Changes that the server has. */
  readonly serverMessagesCount: number;
  /** All changes: those on the server, and those that this device has yet to send. */
  readonly totalMessagesCount: number;
  readonly pendingUploadCount: number;
  readonly pendingDownloadCount: number;
  /** Whether server and device have the same changes, and none is waiting. */
  readonly inSync: boolean;
  /** All devices of the account, including this one. */
  readonly devices: readonly DeviceInfo[];
}

/**
 * What is in JSON, as TypeScript. Made from Rust types by web/tests/json-types.test.ts: change
 * those, and run WARREN_RECORD=1 cargo xtask browser json-types.
 */

/** Why a row's visibility is not its liveness. */
export type VisibilityOverrideKindJson =
  "resurrected" | "dangling_reference" | "displaced" | "constraint" | "invalid_key" | "incomplete";
/** What is in a table's way. */
export type SchemaConflictKindJson =
  "unwritable" | "declaration_rejected" | "key_mismatch" | "null_key";

/** What somebody did to a cell or a row. */
export interface ConflictEditJson {
  /**
   * When the change was made, in milliseconds since 1970. Rows that were there before their
   * table was tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the row was deleted. */
  readonly deleted: boolean;
  /** The device's name, or the digits of its node id. */
  readonly device_name: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The message's timestamp. */
  readonly timestamp: string;
  /** What the cell became, as an SQL literal; null for a row as a whole. */
  readonly value: string | null;
}
/** An edit that is not shown, and that the author of what is shown did not see. */
export interface ConflictJson {
  /** The column; null for the row as a whole. */
  readonly column: string | null;
  /** Its id: hex digits, the same on every device. */
  readonly id: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  readonly lost: ConflictEditJson;
  /** The table. */
  readonly table: string;
  readonly winner: ConflictEditJson;
}
/** A row that was deleted, and is not there again. */
export interface DeletedRowJson {
  /** Its columns, those of the key too, and their last values as SQL literals. */
  readonly cells: {
    [k: string]: string;
  };
  /**
   * When the change was made, in milliseconds since 1970. Rows that were there before their
   * table was tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** The device's name, or the digits of its node id. */
  readonly device_name: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The message's timestamp. */
  readonly timestamp: string;
}
/** A device of the account. */
export interface DeviceJson {
  /** When it was registered, milliseconds since 1970. */
  readonly created_ms: number;
  /** Whether it is the one that asks. */
  readonly current: boolean;
  /** Up to which sequence number it has what the vault has. */
  readonly cursor: number;
  /** 16 hex digits. */
  readonly device_id: string;
  /** When it last synced, milliseconds since 1970; 0 if never. */
  readonly last_seen_ms: number;
  /** What people call it. */
  readonly name: string;
  /**
   * The node id in the timestamps of its changes: 16 hex digits, or empty if it has not said so.
   */
  readonly node_id: string;
  /** Messages of the vault that it has yet to fetch. */
  readonly pending_download_count: number;
  /**
   * The device whose token registered it, and with which it is revoked; empty if the password
   * did.
   */
  readonly registered_by: string;
  /** Changes that it had yet to send when it was last heard of. */
  readonly unsent_count: number;
}
/** A hidden row. */
export interface HiddenRowJson {
  /** Columns and their values as SQL literals, as far as they are known. */
  readonly cells: {
    [k: string]: string;
  };
  /** The same on every device that holds it. */
  readonly id: string;
  /** Its key as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The same in words, often SQLite's. */
  readonly reason: string;
  /**
   * The key of a visible row that has a value which only one may have, as SQL literals:
   * the two can be merged. Null if there is none.
   */
  readonly same_as: string | null;
  /** Its table. */
  readonly table: string;
}
/** One cell of a write. */
export interface HistoryCellJson {
  /** Its column. */
  readonly column: string;
  /** Its value, as an SQL literal. */
  readonly value: string;
  /** Whether it is what the cell is now. */
  readonly visible: boolean;
}
/** One change of a row. */
export interface HistoryEntryJson {
  /** What was written. */
  readonly cells: readonly HistoryCellJson[];
  /**
   * When the change was made, in milliseconds since 1970. Rows that were there before their
   * table was tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the row was deleted, rather than written. */
  readonly deleted: boolean;
  /** The device's name, or the digits of its node id. */
  readonly device_name: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The message's timestamp. */
  readonly timestamp: string;
  /** Whether it decides that the row is there, or is not. */
  readonly visible: boolean;
}
/** A constraint that another device's table has and this file's has not. */
export interface MissingConstraintJson {
  /** What it is: `check`, `generated_column` or `unique_index`. */
  readonly kind: string;
  /** Its name; the expression of a CHECK. */
  readonly name: string;
  /** The table. */
  readonly table: string;
}
/** A row whose visibility is not its liveness. */
export interface OverriddenRowJson {
  /** The primary key, as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The same in words. */
  readonly reason: string;
  /** The table. */
  readonly table: string;
}
/**
 * Received messages that are no changes here. They stay in the log, where nothing can take their
 * timestamps, and are never shown.
 */
export interface RejectedMessagesJson {
  readonly by_reason: RejectionCountsJson;
  /** The timestamps of the first of them, at most five. */
  readonly timestamps: readonly string[];
}
/** How many messages were rejected for each reason. */
export interface RejectionCountsJson {
  /** Not encrypted, though this file encrypts end to end: anybody could have made them. */
  readonly not_encrypted: number;
  /** Encrypted, under another message's timestamp. */
  readonly replayed: number;
  /** Encrypted, and changed by somebody without the key. */
  readonly tampered: number;
  /** Encrypted, their end missing. */
  readonly truncated: number;
  /** Of a later version of Warren, or of none; or not under a timestamp that a message may have. */
  readonly undecodable: number;
  /** Encrypted with another key. */
  readonly wrong_key: number;
}
/** The server's side as last seen. */
export interface RemoteStatusJson {
  /** The sequence number up to which this device has everything. */
  readonly cursor: number;
  /** This device's registration. */
  readonly device_id: string;
  /** Whether both sets were equal then. */
  readonly in_sync: boolean;
  /** When the last sync ended, milliseconds since 1970; 0 if never. */
  readonly last_synced_ms: number;
  /** The account. */
  readonly login: string;
  /** Its address. */
  readonly server: string;
  readonly server_loss: ServerLossJson | null;
  /** Messages that the server had then. */
  readonly server_messages_count: number;
}
/**
 * Messages that the server could not read any more, because its disk had damaged them. Devices
 * that have them send them again.
 */
export interface ServerLossJson {
  /** Names of the account's other devices that have not synced since: twenty at most. */
  readonly devices_away: readonly string[];
  /** How many are still missing; absent if the server doesn't know. */
  readonly missing_count: number | null;
  /** When the server found out, milliseconds since 1970. */
  readonly repaired_ms: number;
}
/** A new row that got another key, since another row has the one that it had. */
export interface RenumberedRowJson {
  /** The key that it has. */
  readonly new_key: number;
  /** The key that it had on this device until now. */
  readonly old_key: number;
  /** The row's table. */
  readonly table: string;
}
/** A replica's state, without asking the server. */
export interface ReplicaStatusJson {
  /** Bytes of their contents. */
  readonly content_bytes: number;
  /** Their digest: 32 hex digits. Devices with equal count and digest hold the same messages. */
  readonly digest: string;
  /** Whether contents are encrypted end to end. */
  readonly e2ee: boolean;
  /** Messages that this device has. */
  readonly messages_count: number;
  /**
   * Constraints that other devices' tables have and this file's have not, so that rows may be
   * shown here that are hidden there.
   */
  readonly missing_constraints: readonly MissingConstraintJson[];
  /** Columns and tables that other devices have and this file has not. */
  readonly missing_tables: readonly string[];
  /** This device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** Changes that the triggers noted since the last sync. */
  readonly pending_count: number;
  /** Messages that were received and are not shown, such as those that cannot be decrypted. */
  readonly rejected_count: number;
  readonly remote: RemoteStatusJson | null;
  /** Tables that cannot be as other devices have them, as the last sync found. */
  readonly schema_conflicts: readonly SchemaConflictJson[];
  /** Messages that are not sent, since the server calls their timestamps invalid. */
  readonly set_aside_count: number;
  /** The tracked tables. */
  readonly tables: readonly TableStatusJson[];
  /**
   * Tables that were rebuilt or got columns since the last sync: what was written to them is not
   * all noted, and the next sync looks for it.
   */
  readonly uncaptured_tables: readonly string[];
  /** Messages that the server has not acknowledged. */
  readonly unsent_count: number;
  /** Rows that are resurrected or hidden (`docs/reference/formats/2-message.md`). */
  readonly visibility_overrides: readonly OverriddenRowJson[];
}
/** A table, and what is in its way. */
export interface SchemaConflictJson {
  readonly kind: SchemaConflictKindJson;
  /** The same in words, often SQLite's. */
  readonly reason: string;
  /** The table. */
  readonly table: string;
}
/** A tracked table. */
export interface TableStatusJson {
  /** Rows that it has now. */
  readonly rows_count: number;
  /** Its name. */
  readonly table: string;
}
/** What a sync did. */
export interface SyncReportJson {
  /** How far the device's clock was off, if far enough to be corrected. */
  readonly clock_offset_ms: number;
  /**
   * Edits that lost to others made without knowing of them, in rows where such edits met in this
   * sync.
   */
  readonly conflicts_count: number;
  /** Tables and columns that were created. */
  readonly created_tables: readonly string[];
  /** What both sides differ in, if they do: `withheld`, `lost` or `other`. */
  readonly discrepancy: string | null;
  /** Messages of which something was erased, on another device or from this one. */
  readonly erased_count: number;
  /** Rows that are live and not shown: they collide with newer ones, or do not fit their table. */
  readonly hidden_rows_count: number;
  /** Whether both sets were equal at the end. */
  readonly in_sync: boolean;
  /**
   * What other devices have for the tables that were created, and no device takes from another,
   * since it is SQL: `trigger NAME`, `view NAME`, `CHECK (…)`, `generated column NAME`, `UNIQUE
   * index NAME`.
   */
  readonly left_out: readonly string[];
  /**
   * New rows of this device that became one with another device's, which was equal but for the
   * key, as only one of them could be shown.
   */
  readonly merged_rows: readonly RenumberedRowJson[];
  /** Columns and tables that other devices have and this file has not: what they hold waits. */
  readonly missing_tables: readonly string[];
  /** Messages that were new to this device. */
  readonly received_count: number;
  /** Whether the sets differed, and both sides had to be shown to each other. */
  readonly reconciled: boolean;
  /** Whether this file turned out to be a copy, and became a device of its own. */
  readonly registered_copy: boolean;
  readonly rejected: RejectedMessagesJson;
  /** Messages that the file keeps and does not show, of this sync and earlier ones. */
  readonly rejected_count: number;
  /** New rows of this device that got another key. */
  readonly renumbered_rows: readonly RenumberedRowJson[];
  /** Tables that cannot be as other devices have them. */
  readonly schema_conflicts: readonly SchemaConflictJson[];
  /** Messages that were new to the server. */
  readonly sent_count: number;
  readonly server_loss: ServerLossJson | null;
  /** Messages that the server holds. */
  readonly server_messages_count: number;
  /**
   * Messages that are not sent, since the server calls their timestamps invalid: all that this
   * file holds.
   */
  readonly set_aside_count: number;
  /**
   * Messages of which something was erased here, and that the server has as they were
   * before.
   */
  readonly unerased_count: number;
  /** Why pages of the file may still hold what was erased, if that is so. */
  readonly unscrubbed: string | null;
  /** Rows whose visibility is not their liveness, by kind, zeros included. */
  readonly visibility_override_counts: {
    [k: string]: number;
  };
}
/** The file's side and the server's. */
export interface SyncStatusJson {
  /** The account's devices, this one included. */
  readonly devices: readonly DeviceJson[];
  /** Whether both sides hold the same set, and nothing waits. */
  readonly in_sync: boolean;
  /** Changes that it has yet to get. */
  readonly pending_download_count: number;
  /** Changes that this device has yet to send. */
  readonly pending_upload_count: number;
  /** Changes that the server has. */
  readonly server_messages_count: number;
  /** The server's clock, in milliseconds since 1970. */
  readonly server_time_ms: number;
  /** Changes that there are: what is to be sent besides. */
  readonly total_messages_count: number;
}

/**
 * TypeScript types of JSON values, generated from Rust types by web/tests/json-types.test.ts.
 * Change the Rust types, then run WARREN_RECORD=1 cargo xtask browser json-types.
 */

/** The reason why a deleted row is visible or a live row is hidden. */
export type VisibilityOverrideKindJson =
  "resurrected" | "dangling_reference" | "displaced" | "constraint" | "invalid_key" | "incomplete";
/** The reason why a table differs from other devices. */
export type SchemaConflictKindJson =
  "unwritable" | "declaration_rejected" | "key_mismatch" | "null_key";

/** An edit of a cell or a row. */
export interface ConflictEditJson {
  /**
   * The time of the change, in milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the edit deleted the row. */
  readonly deleted: boolean;
  /** The name of the device that made the change, or the digits of its node id. */
  readonly device_name: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The timestamp of the change's message. */
  readonly timestamp: string;
  /** The new value of the cell as an SQL literal; null if the edit concerns the row as a whole. */
  readonly value: string | null;
}
/** An edit that was overwritten by a concurrent edit. */
export interface ConflictJson {
  /** The name of the column; null if the conflict concerns the row as a whole. */
  readonly column: string | null;
  /** The id of the conflict: hex digits, which are the same on all devices. */
  readonly id: string;
  /** The primary key of the row, as SQL literals. */
  readonly key: string;
  readonly lost: ConflictEditJson;
  /** The name of the table. */
  readonly table: string;
  readonly winner: ConflictEditJson;
}
/** A row that was deleted and not created again. */
export interface DeletedRowJson {
  /** The columns, including those of the key, and their last values as SQL literals. */
  readonly cells: {
    [k: string]: string;
  };
  /**
   * The time of the change, in milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** The name of the device that made the change, or the digits of its node id. */
  readonly device_name: string;
  /** The primary key of the row, as SQL literals. */
  readonly key: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The timestamp of the change's message. */
  readonly timestamp: string;
}
/** A device of the account. */
export interface DeviceJson {
  /** The time of registration, in milliseconds since 1970. */
  readonly created_ms: number;
  /** Whether this is the device that sent the request. */
  readonly current: boolean;
  /** The sequence number up to which the device has all messages of the vault. */
  readonly cursor: number;
  /** The id of the device: 16 hex digits. */
  readonly device_id: string;
  /** The time of the last sync, in milliseconds since 1970; 0 if the device has never synced. */
  readonly last_seen_ms: number;
  /** The name of the device. */
  readonly name: string;
  /** The node id in the timestamps of the device's changes: 16 hex digits, or empty if unknown. */
  readonly node_id: string;
  /** The number of messages that the device has not downloaded yet. */
  readonly pending_download_count: number;
  /**
   * The id of the device whose token registered this one; revoking that device revokes this one,
   * too. Empty if this device was registered with the password.
   */
  readonly registered_by: string;
  /** The number of changes that the device had not sent at its last contact. */
  readonly unsent_count: number;
}
/**
 * A row that is not visible in its table, although it is live, or deleted and still referred to.
 */
export interface HiddenRowJson {
  /** The columns and their values as SQL literals, as far as they are known. */
  readonly cells: {
    [k: string]: string;
  };
  /** The id of the row, which is the same on all devices. */
  readonly id: string;
  /** The primary key of the row, as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The reason in words, often the error message from SQLite. */
  readonly reason: string;
  /**
   * The key of the visible row with the same unique value, as SQL literals: the two rows can be
   * merged. Null if there is no such row.
   */
  readonly same_as: string | null;
  /** The name of the table. */
  readonly table: string;
}
/** The value of one cell that a change wrote. */
export interface HistoryCellJson {
  /** The name of the column. */
  readonly column: string;
  /** The value as an SQL literal. */
  readonly value: string;
  /** Whether this is the current value of the cell. */
  readonly visible: boolean;
}
/** One change of a row. */
export interface HistoryEntryJson {
  /** The values that the change wrote; empty for a deletion. */
  readonly cells: readonly HistoryCellJson[];
  /**
   * The time of the change, in milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the row was deleted instead of written. */
  readonly deleted: boolean;
  /** The name of the device that made the change, or the digits of its node id. */
  readonly device_name: string;
  /** The primary key of the row, as SQL literals. */
  readonly key: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The timestamp of the change's message. */
  readonly timestamp: string;
  /** Whether this change determines if the row exists. */
  readonly visible: boolean;
}
/** A constraint that a table has on another device and lacks in this file. */
export interface MissingConstraintJson {
  /** The kind of constraint: `check`, `generated_column` or `unique_index`. */
  readonly kind: string;
  /** The name of the constraint; for a CHECK, its expression. */
  readonly name: string;
  /** The name of the table. */
  readonly table: string;
}
/** A deleted row that is visible or a live row that is hidden. */
export interface OverriddenRowJson {
  /** The primary key of the row, as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The reason in words. */
  readonly reason: string;
  /** The name of the table. */
  readonly table: string;
}
/**
 * Received messages that cannot be used here. They stay in the log, so that their timestamps
 * cannot be reused, and are never shown.
 */
export interface RejectedMessagesJson {
  readonly by_reason: RejectionCountsJson;
  /** The timestamps of the first rejected messages, at most five. */
  readonly timestamps: readonly string[];
}
/** The number of rejected messages for each reason. */
export interface RejectionCountsJson {
  /**
   * The number of messages that are not encrypted, although this file is end-to-end encrypted:
   * anyone could have created them.
   */
  readonly not_encrypted: number;
  /** The number of messages whose encrypted content has the timestamp of another message. */
  readonly replayed: number;
  /** The number of messages whose encrypted content was changed by someone without the key. */
  readonly tampered: number;
  /** The number of messages whose encrypted content is truncated. */
  readonly truncated: number;
  /**
   * The number of messages that are malformed, come from a later version of Warren, or have an
   * invalid timestamp.
   */
  readonly undecodable: number;
  /** The number of messages that are encrypted with another key. */
  readonly wrong_key: number;
}
/** The state of the server at the last sync. */
export interface RemoteStatusJson {
  /** The sequence number up to which this device has all messages of the server. */
  readonly cursor: number;
  /** The id of this device's registration. */
  readonly device_id: string;
  /** Whether the file and the server were in sync at the last sync. */
  readonly in_sync: boolean;
  /** The time of the last sync, in milliseconds since 1970; 0 if the device has never synced. */
  readonly last_synced_ms: number;
  /** The login of the account. */
  readonly login: string;
  /** The address of the server. */
  readonly server: string;
  readonly server_loss: ServerLossJson | null;
  /** The number of messages on the server at the last sync. */
  readonly server_messages_count: number;
}
/** The messages that the server lost to disk damage. Devices that have them send them again. */
export interface ServerLossJson {
  /** The names of the account's other devices that have not synced since, at most twenty. */
  readonly devices_away: readonly string[];
  /** The number of messages that are still missing; absent if unknown. */
  readonly missing_count: number | null;
  /** The time at which the server repaired the vault, in milliseconds since 1970. */
  readonly repaired_ms: number;
}
/** A new row that got a new key, because another row has its old key. */
export interface RenumberedRowJson {
  /** The key that the row has now. */
  readonly new_key: number;
  /** The key that the row had on this device until now. */
  readonly old_key: number;
  /** The name of the row's table. */
  readonly table: string;
}
/** The state of a replica, determined without contacting the server. */
export interface ReplicaStatusJson {
  /** The size of the messages' contents in bytes. */
  readonly content_bytes: number;
  /**
   * The digest of the messages: 32 hex digits. Devices with equal count and digest have the same
   * messages.
   */
  readonly digest: string;
  /** Whether the contents are end-to-end encrypted. */
  readonly e2ee: boolean;
  /** The number of messages on this device. */
  readonly messages_count: number;
  /**
   * The constraints that tables on other devices have and this file lacks. Rows that are shown
   * here may be hidden there.
   */
  readonly missing_constraints: readonly MissingConstraintJson[];
  /** The columns and tables that other devices have and this file lacks. */
  readonly missing_tables: readonly string[];
  /** This device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The number of changes since the last sync. */
  readonly pending_count: number;
  /** The number of received messages that are not shown, such as those that cannot be decrypted. */
  readonly rejected_count: number;
  readonly remote: RemoteStatusJson | null;
  /** The tables that could not be the same as on other devices at the last sync. */
  readonly schema_conflicts: readonly SchemaConflictJson[];
  /**
   * The number of messages that are not sent, because the server rejects their timestamps as
   * invalid.
   */
  readonly set_aside_count: number;
  /** The tracked tables. */
  readonly tables: readonly TableStatusJson[];
  /**
   * The tables that were rebuilt or got columns since the last sync. Not all writes to them were
   * recorded; the next sync finds the rest.
   */
  readonly uncaptured_tables: readonly string[];
  /** The number of messages that the server has not acknowledged. */
  readonly unsent_count: number;
  /** The resurrected and hidden rows (`docs/reference/formats/2-message.md`). */
  readonly visibility_overrides: readonly OverriddenRowJson[];
}
/** A table that cannot be the same as on other devices. */
export interface SchemaConflictJson {
  readonly kind: SchemaConflictKindJson;
  /** The reason in words, often the error message from SQLite. */
  readonly reason: string;
  /** The name of the table. */
  readonly table: string;
}
/** A tracked table. */
export interface TableStatusJson {
  /** The number of rows in the table. */
  readonly rows_count: number;
  /** The name of the table. */
  readonly table: string;
}
/** The result of a sync. */
export interface SyncReportJson {
  /**
   * The server's clock minus the device's clock, in milliseconds; 0 if the difference is too
   * small to be corrected, or the previous sync did not find the same.
   */
  readonly clock_offset_ms: number;
  /**
   * The number of edits that were overwritten by concurrent edits, in rows with new conflicts in
   * this sync.
   */
  readonly conflicts_count: number;
  /** The tables and columns that this sync created. */
  readonly created_tables: readonly string[];
  /**
   * The kind of difference between the file and the server: `withheld`, `lost` or `other`; null
   * if there is none.
   */
  readonly discrepancy: string | null;
  /** The number of messages from which content was erased, on this or another device. */
  readonly erased_count: number;
  /** The number of hidden rows: rows that conflict with newer rows or do not fit their table. */
  readonly hidden_rows_count: number;
  /** Whether the file and the server had the same messages at the end. */
  readonly in_sync: boolean;
  /**
   * The parts of created tables that other devices have but that are not synced, as they are
   * SQL: `trigger NAME`, `view NAME`, `CHECK (…)`, `generated column NAME`, `UNIQUE index NAME`.
   */
  readonly left_out: readonly string[];
  /**
   * The new rows of this device that were merged with another device's row, because the two
   * differed only in the key and only one could be shown.
   */
  readonly merged_rows: readonly RenumberedRowJson[];
  /**
   * The tables and columns that other devices have and this file lacks. Their content is stored
   * until they exist.
   */
  readonly missing_tables: readonly string[];
  /** The number of messages that were new to this device. */
  readonly received_count: number;
  /** Whether the message sets differed and were reconciled. */
  readonly reconciled: boolean;
  /** Whether this file is a copy and was registered as a new device. */
  readonly registered_copy: boolean;
  readonly rejected: RejectedMessagesJson;
  /** The number of messages in the file that are not shown, from this sync and earlier ones. */
  readonly rejected_count: number;
  /** The new rows of this device that got a new key. */
  readonly renumbered_rows: readonly RenumberedRowJson[];
  /** The tables that cannot be the same as on other devices. */
  readonly schema_conflicts: readonly SchemaConflictJson[];
  /** The number of messages that were new to the server. */
  readonly sent_count: number;
  readonly server_loss: ServerLossJson | null;
  /** The number of messages on the server. */
  readonly server_messages_count: number;
  /**
   * The number of messages in this file that are not sent, because the server rejects their
   * timestamps as invalid.
   */
  readonly set_aside_count: number;
  /** The number of messages from which content was erased here, but not yet on the server. */
  readonly unerased_count: number;
  /** The reason why pages of the file may still contain erased content; null if they do not. */
  readonly unscrubbed: string | null;
  /** The number of hidden and resurrected rows by kind, including zeros. */
  readonly visibility_override_counts: {
    [k: string]: number;
  };
}
/** The sync status of the file and the server. */
export interface SyncStatusJson {
  /** The devices of the account, including this one. */
  readonly devices: readonly DeviceJson[];
  /** Whether the file and the server have the same changes and nothing is pending. */
  readonly in_sync: boolean;
  /** The number of changes that this device still has to download. */
  readonly pending_download_count: number;
  /** The number of changes that this device still has to send. */
  readonly pending_upload_count: number;
  /** The number of changes on the server. */
  readonly server_messages_count: number;
  /** The time of the server's clock, in milliseconds since 1970. */
  readonly server_time_ms: number;
  /** The number of all changes: those on the server and those still to be sent. */
  readonly total_messages_count: number;
}

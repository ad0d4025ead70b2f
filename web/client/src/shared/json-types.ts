/**
 * What is in JSON, as TypeScript. Made from Rust types by web/tests/json-types.test.ts: change
 * those, and run WARREN_RECORD=1 cargo xtask browser json-types.
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
   * The time of the change, milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the row was deleted. */
  readonly deleted: boolean;
  /** The name of the device, or the digits of its node id. */
  readonly device_name: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The message's timestamp. */
  readonly timestamp: string;
  /** The new value of the cell as an SQL literal; null for a row as a whole. */
  readonly value: string | null;
}
/** An edit that was overwritten by a concurrent edit. */
export interface ConflictJson {
  /** The column; null for the row as a whole. */
  readonly column: string | null;
  /** The id of the conflict: hex digits, the same on all devices. */
  readonly id: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  readonly lost: ConflictEditJson;
  /** The table. */
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
   * The time of the change, milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** The name of the device, or the digits of its node id. */
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
  /** The time of registration, milliseconds since 1970. */
  readonly created_ms: number;
  /** Whether this is the device that sent the request. */
  readonly current: boolean;
  /** The sequence number up to which the device has all messages of the vault. */
  readonly cursor: number;
  /** 16 hex digits. */
  readonly device_id: string;
  /** The time of the last sync, milliseconds since 1970; 0 if the device never synced. */
  readonly last_seen_ms: number;
  /** The name of the device. */
  readonly name: string;
  /** The node id in the timestamps of its changes: 16 hex digits, or empty if unknown. */
  readonly node_id: string;
  /** The number of messages that the device has not downloaded yet. */
  readonly pending_download_count: number;
  /**
   * The device whose token registered this one; revoking that device revokes this one, too.
   * Empty if this device was registered with the password.
   */
  readonly registered_by: string;
  /** The number of changes that the device had not sent at its last contact. */
  readonly unsent_count: number;
}
/** A hidden row. */
export interface HiddenRowJson {
  /** The columns and their values as SQL literals, as far as known. */
  readonly cells: {
    [k: string]: string;
  };
  /** The id of the row, the same on all devices. */
  readonly id: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The reason in words, often SQLite's. */
  readonly reason: string;
  /**
   * The key of the visible row with the same unique value, as SQL literals: the two rows can be
   * merged. Null if there is none.
   */
  readonly same_as: string | null;
  /** The table. */
  readonly table: string;
}
/** One cell of a write. */
export interface HistoryCellJson {
  /** The column. */
  readonly column: string;
  /** The value as an SQL literal. */
  readonly value: string;
  /** Whether this is the current value of the cell. */
  readonly visible: boolean;
}
/** One change of a row. */
export interface HistoryEntryJson {
  /** The values that were written. */
  readonly cells: readonly HistoryCellJson[];
  /**
   * The time of the change, milliseconds since 1970. Rows that existed before their table was
   * tracked have the first day of 1970.
   */
  readonly changed_ms: number;
  /** Whether the row was deleted instead of written. */
  readonly deleted: boolean;
  /** The name of the device, or the digits of its node id. */
  readonly device_name: string;
  /** The primary key, as SQL literals. */
  readonly key: string;
  /** The device's id in timestamps: 16 hex digits. */
  readonly node_id: string;
  /** The message's timestamp. */
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
  /** The table. */
  readonly table: string;
}
/** A deleted row that is visible or a live row that is hidden. */
export interface OverriddenRowJson {
  /** The primary key, as SQL literals. */
  readonly key: string;
  readonly kind: VisibilityOverrideKindJson;
  /** The reason in words. */
  readonly reason: string;
  /** The table. */
  readonly table: string;
}
/**
 * Received messages that cannot be used here. They stay in the log, so that their timestamps
 * cannot be reused, and are never shown.
 */
export interface RejectedMessagesJson {
  readonly by_reason: RejectionCountsJson;
  /** The timestamps of the first of them, at most five. */
  readonly timestamps: readonly string[];
}
/** The number of rejected messages for each reason. */
export interface RejectionCountsJson {
  /** Not encrypted, although this file is end-to-end encrypted: anyone could have created them. */
  readonly not_encrypted: number;
  /** Encrypted, but with the timestamp of another message. */
  readonly replayed: number;
  /** Encrypted, but changed by someone without the key. */
  readonly tampered: number;
  /** Encrypted, but truncated. */
  readonly truncated: number;
  /** From a later version of Warren, or malformed; or with an invalid timestamp. */
  readonly undecodable: number;
  /** Encrypted with another key. */
  readonly wrong_key: number;
}
/** The state of the server at the last sync. */
export interface RemoteStatusJson {
  /** The sequence number up to which this device has everything. */
  readonly cursor: number;
  /** The id of this device's registration. */
  readonly device_id: string;
  /** Whether the file and the server were in sync at that time. */
  readonly in_sync: boolean;
  /** The time of the last sync, milliseconds since 1970; 0 if never. */
  readonly last_synced_ms: number;
  /** The login of the account. */
  readonly login: string;
  /** The address of the server. */
  readonly server: string;
  readonly server_loss: ServerLossJson | null;
  /** The number of messages on the server at that time. */
  readonly server_messages_count: number;
}
/** Messages that the server lost to disk damage. Devices that have them send them again. */
export interface ServerLossJson {
  /** The names of the account's other devices that have not synced since, at most twenty. */
  readonly devices_away: readonly string[];
  /** The number of messages that are still missing; absent if unknown. */
  readonly missing_count: number | null;
  /** The time at which the server found the damage, milliseconds since 1970. */
  readonly repaired_ms: number;
}
/** A new row that got a new key, because another row has its old one. */
export interface RenumberedRowJson {
  /** The new key. */
  readonly new_key: number;
  /** The key that the row had on this device until now. */
  readonly old_key: number;
  /** The row's table. */
  readonly table: string;
}
/** The state of a replica, without contacting the server. */
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
  /** The reason in words, often SQLite's. */
  readonly reason: string;
  /** The table. */
  readonly table: string;
}
/** A tracked table. */
export interface TableStatusJson {
  /** The number of rows. */
  readonly rows_count: number;
  /** The name of the table. */
  readonly table: string;
}
/** The result of a sync. */
export interface SyncReportJson {
  /** The clock error of the device, if it was large enough to be corrected. */
  readonly clock_offset_ms: number;
  /**
   * The number of edits that were overwritten by concurrent edits, in rows with new conflicts in
   * this sync.
   */
  readonly conflicts_count: number;
  /** The tables and columns that were created. */
  readonly created_tables: readonly string[];
  /**
   * The kind of difference between the file and the server, if there is one: `withheld`, `lost`
   * or `other`.
   */
  readonly discrepancy: string | null;
  /** The number of messages from which content was erased, on this or another device. */
  readonly erased_count: number;
  /** The number of hidden rows: they conflict with newer rows or do not fit their table. */
  readonly hidden_rows_count: number;
  /** Whether the file and the server had the same messages at the end. */
  readonly in_sync: boolean;
  /**
   * Parts of the created tables that exist on other devices but are not synced, because they are
   * SQL: `trigger NAME`, `view NAME`, `CHECK (…)`, `generated column NAME`, `UNIQUE index NAME`.
   */
  readonly left_out: readonly string[];
  /**
   * New rows of this device that were merged with another device's row, because the two differed
   * only in the key and only one could be shown.
   */
  readonly merged_rows: readonly RenumberedRowJson[];
  /**
   * The columns and tables that other devices have and this file lacks. Their content is stored
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
  /** New rows of this device that got a new key. */
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
  /** The server's clock, in milliseconds since 1970. */
  readonly server_time_ms: number;
  /** The number of all changes: those on the server and those still to be sent. */
  readonly total_messages_count: number;
}

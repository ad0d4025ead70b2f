/**
 * TypeScript types of JSON values, generated from Rust types by web/tests/json-types.test.ts.
 * Change the Rust types, then run WARREN_RECORD=1 cargo xtask browser json-types.
 */

/** The storage of the vaults. */
export type StorageKind = "sqlite" | "postgres";

export interface AccountLimitsView {
  readonly bytes_max: number | null;
  readonly devices_max: number | null;
  readonly mail_bytes_max: number | null;
  readonly messages_max: number | null;
}
/** A part of the list of accounts. */
export interface AccountList {
  readonly accounts: readonly AccountListEntry[];
  /** The start of the next part. */
  readonly cursor: number;
  /** Whether more accounts follow. */
  readonly more: boolean;
  /** The number of accounts that match the search. */
  readonly total_count: number;
}
/** An account in the list. */
export interface AccountListEntry {
  /** The time of creation, milliseconds since 1970. */
  readonly created_ms: number;
  /** The number of devices. */
  readonly devices_count: number;
  /** The size of the vaults' files without their WALs; null if vaults are not stored in files. */
  readonly file_bytes: number | null;
  /** The share of free pages in the open vaults, 0 to 1; null if no vault is open. */
  readonly fragmentation_ratio: number | null;
  /** The last change of any of its files, milliseconds since 1970. */
  readonly last_changed_ms: number | null;
  /**
   * The last sync of any device, milliseconds since 1970; null if the account's own vault is not
   * open or no device ever synced.
   */
  readonly last_seen_ms: number | null;
  readonly limits: AccountLimitsView;
  readonly login: string;
  readonly open_vaults_count: number;
  /** The number of vaults: the account's own vault and its sub-vaults, such as those of budgets. */
  readonly vaults_count: number;
  readonly wal_bytes: number | null;
}
export interface AdminStatus {
  /** Whether the server has an admin token; without one, the other admin calls are refused. */
  readonly enabled: boolean;
}
/** The vaults' files, open or not. */
export interface FileTotals {
  readonly count: number;
  /** The size of the files without their WALs. */
  readonly file_bytes: number;
  /**
   * The time at which closed files were last measured, milliseconds since 1970; with very many
   * files, this can be a while ago.
   */
  readonly scanned_ms: number;
  readonly wal_bytes: number;
}
/** The state of mail. Counters begin at 0, unless they say otherwise, when the server starts. */
export interface MailTotals {
  /** The number of connections that delivered mail, or tried to. */
  readonly connections_count: number;
  /** The number of recipients for whom a message was accepted. */
  readonly delivered_count: number;
  /** The number of deliveries that were filed since the spool was created. */
  readonly filed_count: number;
  /** The time at which the oldest one arrived, milliseconds since 1970; null if none waits. */
  readonly oldest_ms: number | null;
  /**
   * The number of recipients who were refused: they are unknown or have no room, or an error
   * occurred.
   */
  readonly refused_count: number;
  /** The number of deliveries that could not be opened, and wait for the operator. */
  readonly set_aside_count: number;
  /** The size of the waiting deliveries. */
  readonly waiting_bytes: number;
  /** The number of deliveries that wait to be filed. */
  readonly waiting_count: number;
  /** How many of them have waited for at most an hour, a day and a week. */
  readonly younger_counts: readonly number[];
}
/** The result of maintenance. */
export interface MaintenanceReport {
  readonly after_bytes: number;
  /** The size of the maintained files with their WALs before maintenance. */
  readonly before_bytes: number;
  /** The number of closed vaults, which only their users' keys can open; 0 in PostgreSQL. */
  readonly closed_count: number;
  readonly compacted_count: number;
  readonly duration_ms: number;
  /** The number of files that failed; the log has the reasons. */
  readonly failed_count: number;
  /** The number of files that were maintained, including those that needed nothing. */
  readonly files_count: number;
  readonly optimized_count: number;
  /** The number of files that were not processed in time; call again. */
  readonly remaining_count: number;
  readonly returned_pages_count: number;
  /** The number of pages that were checked for damage. */
  readonly scrubbed_pages_count: number;
  readonly truncated_wals_count: number;
}
/** The maintenance since the server was started. */
export interface MaintenanceTotals {
  readonly compacted_count: number;
  /** The number of times that a file was found damaged. */
  readonly damaged_count: number;
  readonly optimized_count: number;
  /** The number of damaged vaults that were quarantined and rebuilt. */
  readonly repaired_count: number;
  readonly returned_pages_count: number;
  readonly runs_count: number;
  /** The number of pages that were checked for damage. */
  readonly scrubbed_pages_count: number;
  readonly truncated_wals_count: number;
}
export interface MessageTotals {
  /** The number of received messages that were already known. */
  readonly known_count: number;
  /** The number of sent messages. */
  readonly sent_count: number;
  /** The number of received messages that were new. */
  readonly stored_count: number;
}
/** The open vaults' files and their memory. */
export interface OpenVaultTotals {
  /** The size of all page caches, including that of the accounts file. */
  readonly cache_bytes: number;
  readonly count: number;
  /** The size of all pages, including those that are still in a WAL. */
  readonly file_bytes: number;
  /** The largest share of free pages, 0 to 1. */
  readonly fragmentation_ratio_max: number;
  /** The size of the free pages. */
  readonly free_bytes: number;
  /** The age of the oldest running read. */
  readonly longest_read_ms: number;
  readonly wal_bytes: number;
  readonly wal_bytes_max: number;
}
/** The readiness of the server and its problems. */
export interface Readiness {
  /**
   * Whether the accounts file is damaged. Some devices or logins may be refused. The readable
   * part is still used; restore the file from a backup.
   */
  readonly accounts_damaged: boolean;
  /**
   * Whether the accounts file refuses writes after a disk failure; no device can be registered
   * until it has recovered.
   */
  readonly accounts_poisoned: boolean;
  /**
   * The number of open vaults that are damaged and were not repaired, because an earlier
   * .damaged file still exists.
   */
  readonly damaged_vaults_count: number;
  /** Whether the disk of the data directory is full; nothing new is stored. */
  readonly disk_full: boolean;
  /** The number of open vaults that refuse writes after a disk failure and have not recovered. */
  readonly poisoned_vaults_count: number;
  /** Whether the server accepts logins and writes, except perhaps for a few vaults. */
  readonly ready: boolean;
  /**
   * The number of open files whose backup makes no progress. The server no longer waits for it;
   * the log names its process.
   */
  readonly stalled_backups_count: number;
}
/**
 * The state of the server. Counters start at 0 when the server starts; two responses give a rate.
 */
export interface ServerOverview {
  readonly accounts_count: number;
  readonly connections_count: number;
  readonly connections_max: number;
  /** The number of devices of all accounts. */
  readonly devices_count: number;
  /** The number of requests that were answered with a status of 500 or higher. */
  readonly failed_requests_count: number;
  readonly files: FileTotals | null;
  readonly mail: MailTotals | null;
  readonly maintenance: MaintenanceTotals;
  readonly messages: MessageTotals;
  readonly open_vaults: OpenVaultTotals;
  readonly readiness: Readiness;
  readonly requests_count: number;
  /** The server's clock, milliseconds since 1970. */
  readonly server_time_ms: number;
  readonly storage: StorageKind;
  /** The number of open event streams. */
  readonly subscribers_count: number;
  readonly subscribers_max: number;
  readonly syncs: SyncTotals;
  readonly transactions: TransactionTotals;
  readonly uptime_ms: number;
  readonly vaults_count: number;
  readonly version: string;
}
/** Requests that pushed or pulled messages. */
export interface SyncTotals {
  /** Upper bounds of the durations, in milliseconds. */
  readonly bounds_ms: readonly number[];
  readonly count: number;
  /**
   * The number of requests per interval between two bounds; the last is the number above all
   * bounds.
   */
  readonly counts: readonly number[];
}
/** Transactions of all files, including the accounts file. */
export interface TransactionTotals {
  /** The number of commits; several transactions can share one. */
  readonly batches_count: number;
  readonly committed_count: number;
  readonly failed_count: number;
  /** The number of times that a WAL was flushed to the disk. */
  readonly flushes_count: number;
  /** The number of transactions rejected because a queue was full. */
  readonly rejected_count: number;
}

/**
 * What is in JSON, as TypeScript. Made from Rust types by web/tests/json-types.test.ts: change
 * those, and run WARREN_RECORD=1 cargo xtask browser json-types.
 */

/** Where vaults are kept. */
export type StorageKind = "sqlite" | "postgres";

export interface AccountLimitsView {
  readonly bytes_max: number | null;
  readonly devices_max: number | null;
  readonly messages_max: number | null;
}
/** A part of the list of accounts. */
export interface AccountList {
  readonly accounts: readonly AccountListEntry[];
  /** Where the next part begins. */
  readonly cursor: number;
  /** Whether accounts follow. */
  readonly more: boolean;
  /** How many the search finds. */
  readonly total_count: number;
}
/** An account, as its operator sees it. */
export interface AccountListEntry {
  /** Milliseconds since 1970. */
  readonly created_ms: number;
  /** Its devices. */
  readonly devices_count: number;
  /** The vaults' files, without their WALs. Null where vaults have no files of their own. */
  readonly file_bytes: number | null;
  /** The share of pages that hold nothing, 0 to 1, of the vaults that are open; null if none is. */
  readonly fragmentation_ratio: number | null;
  /** When one of its files was last changed, milliseconds since 1970. */
  readonly last_changed_ms: number | null;
  /**
   * When one of its devices last synced, milliseconds since 1970. Null if its own vault is not
   * open, or none ever did.
   */
  readonly last_seen_ms: number | null;
  readonly limits: AccountLimitsView;
  readonly login: string;
  readonly open_vaults_count: number;
  /** Its vaults: its own, and those of its budgets. */
  readonly vaults_count: number;
  readonly wal_bytes: number | null;
}
export interface AdminStatus {
  /** Whether the server has an operator's token; without one the other calls let nobody in. */
  readonly enabled: boolean;
}
/** The vaults' files, open or not. */
export interface FileTotals {
  readonly count: number;
  /** Without their WALs. */
  readonly file_bytes: number;
  /**
   * When those that are not open were looked at, milliseconds since 1970: where there are very
   * many, a while ago.
   */
  readonly scanned_ms: number;
  readonly wal_bytes: number;
}
/** What maintenance has done. */
export interface MaintenanceReport {
  readonly after_bytes: number;
  /** Of the files that were looked after, with their WALs. */
  readonly before_bytes: number;
  /** Vaults that are not open, which their users' keys alone open. None in PostgreSQL. */
  readonly closed_count: number;
  readonly compacted_count: number;
  readonly duration_ms: number;
  /** Files of which the log says why not. */
  readonly failed_count: number;
  /** Files that were looked after, whatever they needed. */
  readonly files_count: number;
  readonly optimized_count: number;
  /** Files for which there was no time; call again. */
  readonly remaining_count: number;
  readonly returned_pages_count: number;
  /** Pages read to see whether they are damaged. */
  readonly scrubbed_pages_count: number;
  readonly truncated_wals_count: number;
}
/** What maintenance has done. */
export interface MaintenanceTotals {
  readonly compacted_count: number;
  /** Times that a file was found damaged. */
  readonly damaged_count: number;
  readonly optimized_count: number;
  /** Damaged vaults that were put aside and made anew. */
  readonly repaired_count: number;
  readonly returned_pages_count: number;
  readonly runs_count: number;
  /** Pages read to see whether they are damaged. */
  readonly scrubbed_pages_count: number;
  readonly truncated_wals_count: number;
}
export interface MessageTotals {
  /** Came, and were there already. */
  readonly known_count: number;
  /** Left. */
  readonly sent_count: number;
  /** Came, and were new. */
  readonly stored_count: number;
}
/** The vaults' files that are open, and their memory. */
export interface OpenVaultTotals {
  /** Of all page caches, also that of the accounts' file. */
  readonly cache_bytes: number;
  readonly count: number;
  /** Of their pages, also of those that are in a WAL as yet. */
  readonly file_bytes: number;
  /** The largest share of free pages, 0 to 1. */
  readonly fragmentation_ratio_max: number;
  /** Pages that hold nothing. */
  readonly free_bytes: number;
  /** Age of the oldest read that is running. */
  readonly longest_read_ms: number;
  readonly wal_bytes: number;
  readonly wal_bytes_max: number;
}
/** What keeps the server from doing its work. */
export interface Readiness {
  /**
   * The accounts' file does not read back as it was written, so some devices or logins may be
   * refused. It is used as far as it can be read: restore it from a backup.
   */
  readonly accounts_damaged: boolean;
  /**
   * The disk failed under the accounts' file: no device can be registered until it has
   * recovered.
   */
  readonly accounts_poisoned: boolean;
  /** Open vaults that are damaged and were not repaired, because that has happened before. */
  readonly damaged_vaults_count: number;
  /** There is no room on the disk of the data directory: nothing new is stored. */
  readonly disk_full: boolean;
  /** Open vaults whose disk failed, and that have not recovered. */
  readonly poisoned_vaults_count: number;
  /** Devices are let in and their writes taken, but for those of a few vaults perhaps. */
  readonly ready: boolean;
  /**
   * Open files that a backup copies which makes no progress. Nobody waits for it; the log names
   * its process.
   */
  readonly stalled_backups_count: number;
}
/** How the server is. What counts up does so since it was started: two answers make a rate. */
export interface ServerOverview {
  readonly accounts_count: number;
  readonly connections_count: number;
  readonly connections_max: number;
  /** Devices of all accounts. */
  readonly devices_count: number;
  /** Requests that were answered with a status of 500 or more. */
  readonly failed_requests_count: number;
  readonly files: FileTotals | null;
  readonly maintenance: MaintenanceTotals;
  readonly messages: MessageTotals;
  readonly open_vaults: OpenVaultTotals;
  readonly readiness: Readiness;
  readonly requests_count: number;
  /** The server's clock, milliseconds since 1970. */
  readonly server_time_ms: number;
  readonly storage: StorageKind;
  /** Devices that listen. */
  readonly subscribers_count: number;
  readonly subscribers_max: number;
  readonly syncs: SyncTotals;
  readonly transactions: TransactionTotals;
  readonly uptime_ms: number;
  readonly vaults_count: number;
  readonly version: string;
}
/** Requests that brought or fetched messages. */
export interface SyncTotals {
  /** Bounds of durations, in milliseconds. */
  readonly bounds_ms: readonly number[];
  readonly count: number;
  /**
   * How many took no longer than each bound, but longer than the one before; the last, longer
   * than all.
   */
  readonly counts: readonly number[];
}
/** Of all files, also the accounts'. */
export interface TransactionTotals {
  /** Commits: several transactions share one. */
  readonly batches_count: number;
  readonly committed_count: number;
  readonly failed_count: number;
  /** Times that a WAL was flushed to the disk. */
  readonly flushes_count: number;
  /** Not taken, because a queue was full. */
  readonly rejected_count: number;
}

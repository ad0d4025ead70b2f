/** Converts the JSON of the engine and the server (`json-types.ts`) to this package's types. */
import type * as api from "../api.js";
import type {
  ConflictEditJson,
  ConflictJson,
  DeletedRowJson,
  DeviceJson,
  HiddenRowJson,
  HistoryEntryJson,
  RenumberedRowJson,
  ReplicaStatusJson,
  ServerLossJson,
  SyncReportJson,
  SyncStatusJson,
} from "./json-types.js";
import { fromLiterals } from "./sql-literals.js";

/** Returns an object to spread, empty if nothing was lost. */
export function toServerLoss(loss: ServerLossJson | null): {
  readonly serverLoss?: api.ServerLoss;
} {
  if (loss === null) return {};
  const { repaired_ms: repairedMs, missing_count: count, devices_away: devicesAway } = loss;
  const missing = count === null ? {} : { missingCount: count };
  return { serverLoss: { repairedMs, ...missing, devicesAway } };
}

export function toStatus(text: string): ReplicaStatusJson {
  return JSON.parse(text) as ReplicaStatusJson;
}

/** Converts the fields that a page sees; the JSON has more. */
export function toReport(text: string): api.SyncReport {
  const report = JSON.parse(text) as SyncReportJson;
  const counts = Object.values(report.rejected.by_reason) as number[];
  return {
    sentCount: report.sent_count,
    receivedCount: report.received_count,
    inSync: report.in_sync,
    reconciled: report.reconciled,
    newRejectedCount: counts.reduce((sum, count) => sum + count, 0),
    rejectedCount: report.rejected_count,
    setAsideCount: report.set_aside_count,
    erasedCount: report.erased_count,
    conflictsCount: report.conflicts_count,
    hiddenRowsCount: report.hidden_rows_count,
    renumberedRows: report.renumbered_rows.map(toRenumbered),
    mergedRows: report.merged_rows.map(toRenumbered),
    missingTables: report.missing_tables,
    ...toServerLoss(report.server_loss),
    ...(report.unscrubbed === null ? {} : { unscrubbed: report.unscrubbed }),
  };
}

function toRenumbered(row: RenumberedRowJson): api.RenumberedRow {
  return { table: row.table, oldKey: row.old_key, newKey: row.new_key };
}

export function toDevice(device: DeviceJson): api.DeviceInfo {
  return {
    id: device.device_id,
    name: device.name,
    isCurrent: device.current,
    lastSeenMs: device.last_seen_ms,
    createdMs: device.created_ms,
    unsentCount: device.unsent_count,
    pendingDownloadCount: device.pending_download_count,
  };
}

export function toSyncStatus(text: string): api.SyncStatus {
  const status = JSON.parse(text) as SyncStatusJson;
  return {
    serverMessagesCount: status.server_messages_count,
    totalMessagesCount: status.total_messages_count,
    pendingUploadCount: status.pending_upload_count,
    pendingDownloadCount: status.pending_download_count,
    inSync: status.in_sync,
    devices: status.devices.map(toDevice),
  };
}

export function toHistory(text: string): api.HistoryEntry[] {
  return (JSON.parse(text) as HistoryEntryJson[]).map((entry) => ({
    timestamp: entry.timestamp,
    changedMs: entry.changed_ms,
    deviceName: entry.device_name,
    deleted: entry.deleted,
    cells: toRow(Object.fromEntries(entry.cells.map(({ column, value }) => [column, value]))),
  }));
}

export function toDeletedRows(text: string): api.DeletedRow[] {
  return (JSON.parse(text) as DeletedRowJson[]).map((deleted) => ({
    key: fromLiterals(deleted.key),
    deviceName: deleted.device_name,
    changedMs: deleted.changed_ms,
    cells: toRow(deleted.cells),
  }));
}

export function toHiddenRows(text: string): api.HiddenRow[] {
  return (JSON.parse(text) as HiddenRowJson[]).map((hidden) => ({
    id: hidden.id,
    table: hidden.table,
    key: fromLiterals(hidden.key),
    // A `resurrected` row is shown, so it is never in this list.
    kind: hidden.kind as api.HiddenRow["kind"],
    reason: hidden.reason,
    cells: toRow(hidden.cells),
    ...(hidden.same_as === null ? {} : { sameAs: fromLiterals(hidden.same_as) }),
  }));
}

export function toConflicts(text: string): api.Conflict[] {
  return (JSON.parse(text) as ConflictJson[]).map(({ id, table, key, column, lost, winner }) => ({
    id,
    table,
    key: fromLiterals(key),
    lost: toConflictEdit(column, lost),
    shown: toConflictEdit(column, winner),
  }));
}

function toConflictEdit(column: string | null, edit: ConflictEditJson): api.ConflictEdit {
  return {
    deviceName: edit.device_name,
    changedMs: edit.changed_ms,
    deleted: edit.deleted,
    cells: toCell(column, edit.value),
  };
}

/** Converts a map of columns to SQL literals. */
function toRow(cells: Readonly<Record<string, string>>): api.SqlRow {
  const each = Object.entries(cells).map(([column, literal]) => toCell(column, literal));
  return Object.assign({}, ...each) as api.SqlRow;
}

function toCell(column: string | null, literal: string | null): api.SqlRow {
  return column === null || literal === null ? {} : { [column]: fromLiterals(literal)[0] ?? null };
}

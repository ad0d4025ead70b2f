/** From the JSON of the engine and the server (`json-types.ts`) to this package's types. */
import type * as api from "../api.js";
import type {
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

/** For a spread: nothing where nothing was lost. */
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

/** What a page sees; there is more in the JSON. */
export function toReport(text: string): api.SyncReport {
  const report = JSON.parse(text) as SyncReportJson;
  const counts = Object.values(report.rejected.by_reason) as number[];
  return {
    sent: report.sent_count,
    received: report.received_count,
    equal: report.in_sync,
    repaired: report.reconciled,
    refused: counts.reduce((sum, count) => sum + count, 0),
    refusedInAll: report.rejected_count,
    setAside: report.set_aside_count,
    erased: report.erased_count,
    lost: report.conflicts_count,
    held: report.hidden_rows_count,
    renumbered: report.renumbered_rows.map(toRenumbered),
    joined: report.merged_rows.map(toRenumbered),
    unknown: report.missing_tables,
    ...toServerLoss(report.server_loss),
    ...(report.unscrubbed === null ? {} : { unscrubbed: report.unscrubbed }),
  };
}

function toRenumbered(row: RenumberedRowJson): api.SyncReport["renumbered"][number] {
  return { table: row.table, from: row.old_key, to: row.new_key };
}

export function toDevice(device: DeviceJson): api.DeviceInfo {
  return {
    id: device.device_id,
    name: device.name,
    isCurrent: device.current,
    seenMs: device.last_seen_ms,
    createdMs: device.created_ms,
    unsent: device.unsent_count,
    behind: device.pending_download_count,
  };
}

export function toSyncStatus(text: string): api.SyncStatus {
  const status = JSON.parse(text) as SyncStatusJson;
  return {
    serverCount: status.server_messages_count,
    knownCount: status.total_messages_count,
    toSend: status.pending_upload_count,
    toFetch: status.pending_download_count,
    equal: status.in_sync,
    devices: status.devices.map(toDevice),
  };
}

export function toHistory(text: string): api.HistoryEntry[] {
  return (JSON.parse(text) as HistoryEntryJson[]).map((entry) => ({
    timestamp: entry.timestamp,
    timeMs: entry.changed_ms,
    device: entry.device_name,
    deleted: entry.deleted,
    cells: toRow(Object.fromEntries(entry.cells.map(({ column, value }) => [column, value]))),
  }));
}

export function toDeleted(text: string): api.DeletedRow[] {
  return (JSON.parse(text) as DeletedRowJson[]).map((deleted) => ({
    key: fromLiterals(deleted.key),
    device: deleted.device_name,
    timeMs: deleted.changed_ms,
    row: toRow(deleted.cells),
  }));
}

export function toHeld(text: string): api.HeldRow[] {
  return (JSON.parse(text) as HiddenRowJson[]).map((hidden) => ({
    id: hidden.id,
    table: hidden.table,
    key: fromLiterals(hidden.key),
    // A row that is shown is not hidden.
    kind: hidden.kind as api.HeldRow["kind"],
    reason: hidden.reason,
    row: toRow(hidden.cells),
    ...(hidden.same_as === null ? {} : { sameAs: fromLiterals(hidden.same_as) }),
  }));
}

export function toConflicts(text: string): api.Conflict[] {
  return (JSON.parse(text) as ConflictJson[]).map(({ lost, winner, ...conflict }) => ({
    id: conflict.id,
    table: conflict.table,
    key: fromLiterals(conflict.key),
    device: lost.device_name,
    timeMs: lost.changed_ms,
    keptDevice: winner.device_name,
    keptMs: winner.changed_ms,
    lost: toCell(conflict.column, lost.value),
    kept: toCell(conflict.column, winner.value),
    lostDeleted: lost.deleted,
    keptDeleted: winner.deleted,
  }));
}

/** Columns and their values as SQL literals. */
function toRow(cells: Readonly<Record<string, string>>): api.SqlRow {
  const each = Object.entries(cells).map(([column, literal]) => toCell(column, literal));
  return Object.assign({}, ...each) as api.SqlRow;
}

function toCell(column: string | null, literal: string | null): api.SqlRow {
  return column === null || literal === null ? {} : { [column]: fromLiterals(literal)[0] ?? null };
}

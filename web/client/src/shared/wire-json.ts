/** From the JSON that `warren --json` and the server speak to this package's types. */
import type {
  Conflict,
  DeletedRow,
  DeviceInfo,
  HeldRow,
  HistoryEntry,
  SyncStatus,
  SqlRow,
  ServerLoss,
  SyncReport,
} from "../api.js";
import { fromLiterals } from "./sql-literals.js";

/** Of `ReplicaHandle.status`. */
export interface ReplicaStatusJson {
  readonly sealed: boolean;
  /** Messages that the server has not acknowledged. */
  readonly unsent: number;
  /** Changes that the triggers noted and that are no messages yet. */
  readonly noted: number;
  /** Tables that were rebuilt or got columns since the last sync. */
  readonly uncaptured: readonly string[];
  readonly remote: RemoteStatusJson | null;
  /** Rows that are not as the messages say. */
  readonly exceptions: readonly { readonly kind: string }[];
}

interface RemoteStatusJson {
  readonly server: string;
  readonly login: string;
  /** 0 if never. */
  readonly synced_ms: number;
  readonly equal: boolean;
  readonly loss: LossJson | null;
}

/** `ServerLoss` of Format 3. */
interface LossJson {
  readonly repaired_ms: number;
  readonly missing_count: number | null;
  readonly devices_away: readonly string[];
}

/** For a spread: nothing where nothing was lost. */
export function toServerLoss(loss: LossJson | null): { readonly serverLoss?: ServerLoss } {
  if (loss === null) return {};
  const { repaired_ms: repairedMs, missing_count: count, devices_away: devicesAway } = loss;
  const missing = count === null ? {} : { missingCount: count };
  return { serverLoss: { repairedMs, ...missing, devicesAway } };
}

export function toStatus(json: string): ReplicaStatusJson {
  return JSON.parse(json) as ReplicaStatusJson;
}

interface SyncReportJson {
  readonly sent: number;
  readonly received: number;
  readonly equal: boolean;
  readonly repaired: boolean;
  readonly erased: number;
  readonly unscrubbed: string | null;
  readonly lost: number;
  readonly held: number;
  readonly renumbered: SyncReport["renumbered"];
  readonly joined: SyncReport["joined"];
  readonly set_aside: number;
  readonly unknown: readonly string[];
  readonly refused: {
    readonly by_reason: Readonly<Record<string, number>>;
    readonly in_all: number;
  };
  readonly server_loss: LossJson | null;
}

/** What a page is told; there is more in the JSON. */
export function toReport(json: string): SyncReport {
  const report = JSON.parse(json) as SyncReportJson;
  const { refused, set_aside: setAside, unscrubbed } = report;
  const { sent, received, equal, repaired, erased, lost, held, renumbered, joined } = report;
  const rows = { lost, held, renumbered, joined, unknown: report.unknown };
  const { in_all: refusedInAll, by_reason: byReason } = refused;
  const count = Object.values(byReason).reduce((sum, of) => sum + of, 0);
  const messages = { sent, received, refused: count, refusedInAll, setAside, erased };
  const server = toServerLoss(report.server_loss);
  const scrub = unscrubbed === null ? {} : { unscrubbed };
  return { equal, repaired, ...messages, ...rows, ...server, ...scrub };
}

/** As in Format 3. */
export interface DeviceJson {
  readonly device_id: string;
  readonly name: string;
  readonly current: boolean;
  readonly last_seen_ms: number;
  readonly created_ms: number;
  readonly unsent_count: number;
  readonly pending_download_count: number;
}

export function toDevice(json: DeviceJson): DeviceInfo {
  return {
    id: json.device_id,
    name: json.name,
    isCurrent: json.current,
    seenMs: json.last_seen_ms,
    createdMs: json.created_ms,
    unsent: json.unsent_count,
    behind: json.pending_download_count,
  };
}

interface SyncStatusJson {
  readonly server_count: number;
  readonly known_count: number;
  readonly to_send: number;
  readonly to_fetch: number;
  readonly equal: boolean;
  readonly devices: readonly DeviceJson[];
}

export function toSyncStatus(json: string): SyncStatus {
  const receipt = JSON.parse(json) as SyncStatusJson;
  return {
    serverCount: receipt.server_count,
    knownCount: receipt.known_count,
    toSend: receipt.to_send,
    toFetch: receipt.to_fetch,
    equal: receipt.equal,
    devices: receipt.devices.map(toDevice),
  };
}

interface HistoryEntryJson {
  readonly timestamp: string;
  readonly at_ms: number;
  readonly device: string;
  readonly deleted: boolean;
  readonly cells: readonly { readonly column: string; readonly value: string }[];
}

export function toHistory(json: string): HistoryEntry[] {
  return (JSON.parse(json) as HistoryEntryJson[]).map((entry) => ({
    timestamp: entry.timestamp,
    timeMs: entry.at_ms,
    device: entry.device,
    deleted: entry.deleted,
    cells: Object.assign(
      {},
      ...entry.cells.map(({ column, value }) => cell(column, value)),
    ) as SqlRow,
  }));
}

interface DeletedJson {
  readonly key: string;
  readonly at_ms: number;
  readonly device: string;
  readonly cells: LiteralsByColumn;
}

type LiteralsByColumn = Readonly<Record<string, string>>;

export function toDeleted(json: string): DeletedRow[] {
  return (JSON.parse(json) as DeletedJson[]).map(({ key, at_ms: timeMs, device, cells }) => ({
    key: fromLiterals(key),
    device,
    timeMs,
    row: toRow(cells),
  }));
}

interface HeldJson {
  readonly id: string;
  readonly table: string;
  readonly key: string;
  readonly kind: HeldRow["kind"];
  readonly reason: string;
  readonly cells: LiteralsByColumn;
  readonly same_as: string | null;
}

export function toHeld(json: string): HeldRow[] {
  return (JSON.parse(json) as HeldJson[]).map(({ key, cells, same_as: sameAs, ...held }) => ({
    ...held,
    key: fromLiterals(key),
    row: toRow(cells),
    ...(sameAs === null ? {} : { sameAs: fromLiterals(sameAs) }),
  }));
}

function toRow(cells: LiteralsByColumn): SqlRow {
  const each = Object.entries(cells).map(([name, value]) => cell(name, value));
  return Object.assign({}, ...each) as SqlRow;
}

interface ConflictJson {
  readonly id: string;
  readonly table: string;
  readonly key: string;
  readonly column: string | null;
  readonly lost: EditJson;
  readonly winner: EditJson;
}

interface EditJson {
  readonly at_ms: number;
  readonly device: string;
  readonly deleted: boolean;
  readonly value: string | null;
}

export function toConflicts(json: string): Conflict[] {
  return (JSON.parse(json) as ConflictJson[]).map(({ id, table, key, column, lost, winner }) => ({
    id,
    table,
    key: fromLiterals(key),
    device: lost.device,
    timeMs: lost.at_ms,
    keptDevice: winner.device,
    keptMs: winner.at_ms,
    lost: cell(column, lost.value),
    kept: cell(column, winner.value),
    lostDeleted: lost.deleted,
    keptDeleted: winner.deleted,
  }));
}

function cell(column: string | null, literal: string | null): SqlRow {
  return column === null || literal === null ? {} : { [column]: fromLiterals(literal)[0] ?? null };
}

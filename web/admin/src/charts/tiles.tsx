/** The tiles with the present numbers. */
import type { JSX } from "preact";

import type { MailTotals, ServerOverview } from "../json-types";
import { ago, bytes, count, percent, shortDuration } from "../format";

interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note: string;
}

interface TilesProps {
  readonly overview: ServerOverview;
}

export function Tiles({ overview }: TilesProps): JSX.Element {
  return (
    <section aria-label="Now">
      <dl class="tiles">
        {tiles(overview).map((tile) => (
          <div class="tile" key={tile.name}>
            <dt>{tile.name}</dt>
            <dd class="value">{tile.value}</dd>
            <dd class="note">{tile.note}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function tiles(overview: ServerOverview): readonly Tile[] {
  const { files, mail, open_vaults: open } = overview;
  const read = open.longest_read_ms;
  const devicesCount = overview.devices_count;
  const devices = devicesCount === 1 ? "1 device" : `${count(devicesCount)} devices`;
  return [
    { name: "Accounts", value: count(overview.accounts_count), note: devices },
    {
      name: "Vaults",
      value: count(overview.vaults_count),
      note: files === null ? "stored in PostgreSQL" : `${count(open.count)} open`,
    },
    {
      name: "Size on disk",
      value: files === null ? "–" : bytes(files.file_bytes + files.wal_bytes),
      note: files === null ? "managed by PostgreSQL" : `${bytes(files.file_bytes)} excluding WALs`,
    },
    {
      name: "WAL",
      value: files === null ? "–" : bytes(files.wal_bytes),
      note: `largest ${bytes(open.wal_bytes_max)}`,
    },
    {
      name: "Fragmentation",
      value: open.count === 0 ? "–" : percent(open.fragmentation_ratio_max),
      note: open.count === 0 ? "no open vaults" : `highest; ${bytes(open.free_bytes)} free`,
    },
    {
      name: "Connections",
      value: count(overview.connections_count),
      note: `of ${count(overview.connections_max)}`,
    },
    {
      name: "Subscribers",
      value: count(overview.subscribers_count),
      note: `of ${count(overview.subscribers_max)}`,
    },
    {
      name: "Page cache",
      value: bytes(open.cache_bytes),
      note: read > 0 ? `longest read ${shortDuration(read)}` : "no active reads",
    },
    ...(mail === null ? [] : [mailTile(mail, overview.server_time_ms)]),
  ];
}

function mailTile(mail: MailTotals, nowMs: number): Tile {
  const { oldest_ms: oldestMs, set_aside_count: asideCount } = mail;
  const oldest = oldestMs === null ? "none waits" : `oldest ${ago(oldestMs, nowMs)}`;
  return {
    name: "Waiting mail",
    value: count(mail.waiting_count),
    note: asideCount > 0 ? `${count(asideCount)} set aside` : oldest,
  };
}

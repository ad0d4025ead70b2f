/** The table of accounts. On a narrow screen it keeps the most important columns. */
import type { JSX } from "preact";

import type { AccountListQuery, AccountSortKey } from "./admin-api";
import type { AccountListEntry, AccountList } from "./json-types";
import { ago, bytes, count, date, dateTime, percent, several } from "./format";
import { describeMaintenance, useMaintenance } from "./maintenance";

interface AccountColumn {
  readonly name: string;
  readonly sort: AccountSortKey | null;
  readonly kind: "" | "number" | "wide" | "number wide";
}

const COLUMNS: readonly AccountColumn[] = [
  { name: "Login", sort: "login", kind: "" },
  { name: "Devices", sort: "devices", kind: "number" },
  { name: "Size", sort: "file_bytes", kind: "number" },
  { name: "WAL", sort: null, kind: "number wide" },
  { name: "Fragmentation", sort: null, kind: "number wide" },
  { name: "Last seen", sort: null, kind: "" },
  { name: "Created", sort: "created", kind: "wide" },
  { name: "Limits", sort: null, kind: "wide" },
];

interface TableProps {
  readonly token: string;
  readonly list: AccountList;
  readonly selection: AccountListQuery;
  readonly onSort: (sort: AccountSortKey) => void;
}

export function Table({ token, list, selection, onSort }: TableProps): JSX.Element {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <Head key={column.name} column={column} selection={selection} onSort={onSort} />
            ))}
            <th scope="col" class="action">
              <span class="hidden">Maintenance</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.accounts.map((account) => (
            <Row key={account.login} token={token} account={account} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadProps {
  readonly column: AccountColumn;
  readonly selection: AccountListQuery;
  readonly onSort: (sort: AccountSortKey) => void;
}

function Head({ column, selection, onSort }: HeadProps): JSX.Element {
  const { name, sort, kind } = column;
  if (sort === null) {
    return (
      <th scope="col" class={kind}>
        {name}
      </th>
    );
  }
  const isSorted = selection.sort === sort;
  const order = selection.descending ? "descending" : "ascending";
  return (
    <th scope="col" class={kind} aria-sort={isSorted ? order : "none"}>
      <button type="button" class="sort" onClick={() => onSort(sort)}>
        {name}
        <span aria-hidden="true" class="arrow">
          {isSorted ? (selection.descending ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

interface RowProps {
  readonly token: string;
  readonly account: AccountListEntry;
}

function Row({ token, account }: RowProps): JSX.Element {
  const [outcome, start] = useMaintenance(token, account.login);
  const said = describeMaintenance(outcome);
  const { file_bytes: size, wal_bytes: wal, fragmentation_ratio: fragmentation } = account;
  return (
    <tr>
      <th scope="row" class="login">
        {account.login}
        {account.vaults_count > 1 && <span class="note">{count(account.vaults_count)} vaults</span>}
        {said !== "" && (
          <span role="status" class={outcome.kind === "failed" ? "problem note" : "note"}>
            {said}
          </span>
        )}
      </th>
      <td class="number">{count(account.devices_count)}</td>
      <td class="number">{size === null ? "–" : bytes(size)}</td>
      <td class="number wide">{wal === null ? "–" : bytes(wal)}</td>
      <td class="number wide">{fragmentation === null ? "–" : percent(fragmentation)}</td>
      <td>
        <LastSync account={account} />
      </td>
      <td class="wide">
        <time title={dateTime(account.created_ms)}>{date(account.created_ms)}</time>
      </td>
      <td class="wide">{limits(account)}</td>
      <td class="action">
        <button
          type="button"
          class="small"
          disabled={account.open_vaults_count === 0}
          title={account.open_vaults_count === 0 ? "No open vault" : undefined}
          aria-label={`Maintain the vaults of ${account.login}`}
          aria-disabled={outcome.kind === "running"}
          onClick={start}
        >
          Maintain
        </button>
      </td>
    </tr>
  );
}

/**
 * Shows the time of the last sync: from the vault, if it is open; else the time at which its files
 * changed, which is about the same.
 */
function LastSync({ account }: { readonly account: AccountListEntry }): JSX.Element {
  const then = account.last_seen_ms ?? account.last_changed_ms;
  if (then === null || account.devices_count === 0) {
    return <span>{account.devices_count === 0 ? "never" : "–"}</span>;
  }
  const about = account.last_seen_ms === null ? "about " : "";
  return (
    <time title={dateTime(then)}>
      {about}
      {ago(then, Date.now())}
    </time>
  );
}

function limits({ limits: own }: AccountListEntry): string {
  const parts = [
    own.messages_max === null ? "" : several(own.messages_max, "message"),
    own.bytes_max === null ? "" : bytes(own.bytes_max),
    own.devices_max === null ? "" : several(own.devices_max, "device"),
    own.mail_bytes_max === null ? "" : `${bytes(own.mail_bytes_max)} of mail`,
  ];
  const set = parts.filter((part) => part !== "");
  return set.length === 0 ? "default" : set.join(", ");
}

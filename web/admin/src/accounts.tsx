/** The accounts, one page at a time. The server searches and sorts. */
import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";

import { accounts, AdminApiError } from "./admin-api";
import type { AccountListQuery, AccountSortKey } from "./admin-api";
import type { AccountList } from "./json-types";
import { Table } from "./table";
import { count } from "./format";

const PAGE = 20;
/** The interval at which the list is requested again. */
const STEP_MS = 5_000;
/** The pause in typing after which the search starts. */
const TYPING_MS = 200;

interface AccountsProps {
  readonly token: string;
  readonly isLive: boolean;
}

const FIRST: AccountListQuery = {
  search: "",
  sort: "login",
  descending: false,
  cursor: 0,
  limit: PAGE,
};

export function Accounts({ token, isLive }: AccountsProps): JSX.Element {
  const [selection, setSelection] = useState(FIRST);
  const [typed, setTyped] = useState("");
  const { list, problem } = useList(token, selection, isLive);

  useEffect(() => {
    const timer = setTimeout(() => {
      setSelection((old) => (old.search === typed ? old : { ...old, search: typed, cursor: 0 }));
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);

  const sortBy = (sort: AccountSortKey): void =>
    setSelection((old) => ({
      ...old,
      sort,
      // Names are sorted from the first, numbers from the largest.
      descending: old.sort === sort ? !old.descending : sort !== "login",
      cursor: 0,
    }));
  const go = (pages: number): void =>
    setSelection((old) => ({ ...old, cursor: Math.max(0, old.cursor + pages * PAGE) }));

  return (
    <section class="panel" aria-labelledby="accounts">
      <div class="panel-head">
        <h2 id="accounts">Accounts</h2>
        <label class="hidden" for="search">
          Search by login
        </label>
        <input
          id="search"
          type="search"
          placeholder="Search by login"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </div>
      {problem !== null && (
        <p role="alert" class="problem">
          {problem}
        </p>
      )}
      {list !== null && (
        <>
          <Table token={token} list={list} selection={selection} onSort={sortBy} />
          <Pages list={list} selection={selection} onGo={go} />
        </>
      )}
    </section>
  );
}

interface AccountListState {
  readonly list: AccountList | null;
  readonly problem: string | null;
}

/**
 * Returns one page of the list, requested again every few seconds while the server can be reached.
 */
function useList(token: string, selection: AccountListQuery, isLive: boolean): AccountListState {
  const [listed, setListed] = useState<AccountListState>({ list: null, problem: null });
  useEffect(() => {
    if (!isLive) {
      return undefined;
    }
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const step = async (): Promise<void> => {
      const next = await ask(token, selection);
      if (!isOver) {
        setListed((old) => ({ list: next.list ?? old.list, problem: next.problem }));
        timer = setTimeout(() => void step(), STEP_MS);
      }
    };
    void step();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [token, selection, isLive]);
  return listed;
}

async function ask(token: string, selection: AccountListQuery): Promise<AccountListState> {
  try {
    return { list: await accounts(token, selection), problem: null };
  } catch (error) {
    // The head of the page already reports that the server cannot be reached.
    const isTold = error instanceof AdminApiError && error.kind === "away";
    return { list: null, problem: isTold ? null : "Could not load accounts." };
  }
}

interface PagesProps {
  readonly list: AccountList;
  readonly selection: AccountListQuery;
  readonly onGo: (pages: number) => void;
}

function Pages({ list, selection, onGo }: PagesProps): JSX.Element {
  const first = list.cursor - list.accounts.length;
  const shown =
    list.total_count === 0
      ? selection.search === ""
        ? "No accounts yet."
        : `No accounts match “${selection.search}”.`
      : `${count(first + 1)}–${count(list.cursor)} of ${count(list.total_count)}`;
  return (
    <nav class="pages" aria-label="Account pages">
      <p role="status">{shown}</p>
      <button type="button" disabled={first <= 0} onClick={() => onGo(-1)}>
        Previous
      </button>
      <button type="button" disabled={!list.more} onClick={() => onGo(1)}>
        Next
      </button>
    </nav>
  );
}

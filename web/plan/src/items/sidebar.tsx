/**
 * The sidebar: smart views, lists, and entries of the app. Lists are reordered by dragging, or
 * with Alt and an arrow; items can be dropped on them.
 */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useApp, type ListWithOpenCount } from "../app-context.js";
import { colourOf, reorderList } from "../data/lists.js";
import { isSameView, smartCountsQuery, viewToHash, type PlanView } from "../data/views.js";
import { useRows } from "../ui/hooks.js";
import { Icon, type IconName } from "../ui/icons.js";
import { SyncPill } from "../sync/pill.js";
import { VIEW_NAMES } from "./header.js";
import { SearchField } from "./search-field.js";

type SmartCounts = {
  readonly today: number;
  readonly upcoming: number;
  readonly all: number;
  readonly none: number;
};

const SMART = ["today", "upcoming", "all"] as const;

interface SidebarProps {
  readonly search: string;
  readonly onSearch: (text: string) => void;
  /** Called when the user has gone to a view, so that the drawer closes. */
  readonly onGone?: () => void;
  readonly isDrawer?: boolean;
}

export function Sidebar({ search, onSearch, onGone, isDrawer }: SidebarProps): JSX.Element {
  const app = useApp();
  const counts = useRows<SmartCounts>(app.db, smartCountsQuery(app.now))?.rows[0];
  return (
    <div class="sidebar">
      <header class="brand">
        <img src="/icon.svg" alt="" width="28" height="28" />
        <span>Plan</span>
      </header>
      {isDrawer !== true && <SearchField value={search} onInput={onSearch} />}
      <nav class="places" aria-label="Views and lists">
        <ul>
          {SMART.map((kind) => (
            <li key={kind}>
              <Place
                view={{ kind }}
                icon={kind}
                name={VIEW_NAMES[kind]}
                count={counts?.[kind] ?? 0}
                onGone={onGone}
              />
            </li>
          ))}
          {(counts?.none ?? 0) > 0 && (
            <li>
              <Place
                view={{ kind: "none" }}
                icon="none"
                name={VIEW_NAMES.none}
                count={counts?.none ?? 0}
                onGone={onGone}
              />
            </li>
          )}
        </ul>
        <div class="places-head">
          <h2 id="lists-heading">Lists</h2>
          <button
            type="button"
            class="icon-button"
            aria-label="New list"
            onClick={() => app.openDialog({ kind: "list", list: undefined })}
          >
            <Icon name="plus" size={18} />
          </button>
        </div>
        <ul aria-labelledby="lists-heading" data-testid="lists">
          {app.lists.map((list, index) => (
            <li key={list.id} data-drop-list={list.id}>
              <ListPlace list={list} index={index} onGone={onGone} />
            </li>
          ))}
        </ul>
        {app.lists.length === 0 && <p class="places-hint">Use lists to group your items.</p>}
      </nav>
      <div class="sidebar-foot">
        <SyncPill />
        <button
          type="button"
          class="icon-button"
          aria-label="Settings"
          onClick={() => app.openDialog({ kind: "settings" })}
        >
          <Icon name="settings" />
        </button>
      </div>
    </div>
  );
}

interface PlaceProps {
  readonly view: PlanView;
  readonly icon: IconName;
  readonly name: string;
  readonly count: number;
  readonly onGone: (() => void) | undefined;
}

function Place({ view, icon, name, count, onGone }: PlaceProps): JSX.Element {
  const app = useApp();
  const isHere = isSameView(view, app.view);
  return (
    <a
      class="place"
      href={viewToHash(view)}
      aria-current={isHere ? "page" : undefined}
      onClick={onGone}
    >
      <span class={`place-icon place-${icon}`}>
        <Icon name={icon} />
      </span>
      <span class="place-name">{name}</span>
      <Count value={count} />
    </a>
  );
}

interface ListPlaceProps {
  readonly list: ListWithOpenCount;
  readonly index: number;
  readonly onGone: (() => void) | undefined;
}

function ListPlace({ list, index, onGone }: ListPlaceProps): JSX.Element {
  const app = useApp();
  const view: PlanView = { kind: "list", id: list.id };
  const isHere = isSameView(view, app.view);
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isHere) link.current?.scrollIntoView({ block: "nearest" });
  }, [isHere]);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const target = index + step;
    if (step === 0 || !event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (target < 0 || target >= app.lists.length) return;
    const others = app.lists.filter((other) => other.id !== list.id);
    void app.perform(reorderList(app.db, list, others[target - 1]?.id), "quiet");
  };
  return (
    <a
      ref={link}
      class="place"
      href={viewToHash(view)}
      aria-current={isHere ? "page" : undefined}
      onClick={onGone}
      onKeyDown={move}
      draggable={false}
    >
      <span class="place-icon">
        <span class={`dot colour-${colourOf(list)}`} />
      </span>
      <span class="place-name" dir="auto">
        {list.name}
      </span>
      <Count value={list.open} />
    </a>
  );
}

function Count({ value }: { readonly value: number }): JSX.Element | null {
  if (value === 0) return null;
  return (
    <span class="count">
      {value.toLocaleString("en")}
      <span class="visually-hidden"> open</span>
    </span>
  );
}

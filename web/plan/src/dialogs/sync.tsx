/**
 * The sync dialog: the state of this device, the server, and the other devices; and what the user
 * can do about it.
 */
import type { DeviceInfo, SyncStatus, DatabaseStatus } from "@warren/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useApp, type AppContextValue } from "../app-context.js";
import { describeAgo } from "../data/dates.js";
import { saveDatabase } from "../export.js";
import { lossesText } from "../sync/losses.js";
import { useSyncIndicator } from "../sync/pill.js";
import { errorText } from "../sync/error-texts.js";
import { count, counted, type SyncRemedy } from "../sync/sync-indicator.js";
import { Dialog, Problem, type DialogCloseProps } from "../ui/dialog.js";
import { useStatus, useTask, type AsyncTask } from "../ui/hooks.js";
import { Icon } from "../ui/icons.js";

export function SyncDialog({ onClose }: DialogCloseProps): JSX.Element {
  const app = useApp();
  const { db } = app;
  const status = useStatus(db);
  const standing = useSyncIndicator();
  const [syncStatus, setSyncStatus] = useState<SyncStatus>();
  const load = useTask();
  const task = useTask();
  const account = status.account;
  const reload = (): void => load.run(async () => setSyncStatus(await db.syncStatus()));
  const isAnswered = status.sync.phase === "inSync";
  useEffect(() => {
    if (account !== undefined && isAnswered) reload();
  }, [account?.login, isAnswered, status.lastSyncedMs]);
  return (
    <Dialog title="Sync" onClose={onClose} testId="sync">
      <section class={`standing standing-${standing.tone}`} aria-live="polite">
        <h3>{standing.label}</h3>
        <p>{standing.detail}</p>
        {standing.fraction !== undefined && (
          <progress max={1} value={standing.fraction} aria-label="Sync progress" />
        )}
        <Remedies app={app} remedy={standing.remedy} status={status} task={task} />
      </section>
      <LossesNotice app={app} />
      <Problem text={errorText(task.error)} />
      {account !== undefined && (
        <>
          <SyncStatusTable status={status} syncStatus={syncStatus} />
          <Devices
            devices={syncStatus?.devices ?? []}
            isLoading={load.isBusy && syncStatus === undefined}
            onRevoke={(device) =>
              task.run(async () => {
                await db.revokeDevice(device.id);
                app.toast({ text: `${device.name || "The device"} can no longer sync` });
                reload();
              })
            }
          />
          <div class="button-row">
            <button
              type="button"
              class="button"
              onClick={() => app.openDialog({ kind: "conflicts" })}
            >
              <Icon name="clock" size={18} />
              Lost edits
            </button>
            <button
              type="button"
              class="button"
              onClick={() => app.openDialog({ kind: "password" })}
            >
              <Icon name="lock" size={18} />
              Change password
            </button>
            <button
              type="button"
              class="button"
              onClick={() => app.openDialog({ kind: "signOut" })}
            >
              Sign out
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function LossesNotice({ app }: { readonly app: AppContextValue }): JSX.Element | null {
  const text = lossesText(app.losses);
  if (text === undefined) return null;
  return (
    <section class="standing standing-warn">
      <h3>{text}</h3>
      <p>Nothing is gone. Review what happened and choose what to show.</p>
      <Action label="Review" onClick={() => app.openDialog({ kind: "conflicts" })} isQuiet />
    </section>
  );
}

interface RemediesProps {
  readonly app: AppContextValue;
  readonly remedy: SyncRemedy | undefined;
  readonly status: DatabaseStatus;
  readonly task: AsyncTask<unknown>;
}

function Remedies({ app, remedy, status, task }: RemediesProps): JSX.Element | null {
  const signIn = (): void => app.openDialog({ kind: "account", mode: "signIn" });
  const signUp = (): void => app.openDialog({ kind: "account", mode: "signUp" });
  const retry = (): void => task.run(async () => void (await app.db.sync()));
  switch (remedy) {
    case "signUp":
      return (
        <p class="button-row">
          <button type="button" class="button button-primary" onClick={signUp}>
            Create account
          </button>
          <button type="button" class="button" onClick={signIn}>
            Sign in
          </button>
        </p>
      );
    case "signIn":
      // The user has signed out; the next one may be another person.
      return status.account === undefined ? (
        <p class="button-row">
          <button type="button" class="button button-primary" onClick={signIn}>
            Sign in
          </button>
          <button type="button" class="button" onClick={signUp}>
            Create account
          </button>
        </p>
      ) : (
        <Action label="Sign in" onClick={signIn} />
      );
    case "phrase":
      return (
        <Action
          label="Enter recovery phrase"
          onClick={() => app.openDialog({ kind: "enterPhrase" })}
        />
      );
    case "begin":
      return (
        <Action label="Set up account" onClick={() => app.openDialog({ kind: "newAccount" })} />
      );
    case "export":
      return <Action label="Export items" onClick={() => task.run(() => saveDatabase(app.db))} />;
    case "retry":
      return (
        <Action
          label={task.isBusy ? "Trying…" : "Try again"}
          isBusy={task.isBusy}
          onClick={retry}
        />
      );
    case undefined:
      return status.account === undefined ? null : (
        <Action
          label={task.isBusy ? "Syncing…" : "Sync now"}
          isBusy={task.isBusy}
          onClick={retry}
          isQuiet
        />
      );
  }
}

interface ActionProps {
  readonly label: string;
  readonly onClick: () => void;
  readonly isBusy?: boolean;
  readonly isQuiet?: boolean;
}

function Action({ label, onClick, isBusy, isQuiet }: ActionProps): JSX.Element {
  return (
    <p class="button-row">
      <button
        type="button"
        class={isQuiet === true ? "button" : "button button-primary"}
        disabled={isBusy === true}
        onClick={onClick}
      >
        {label}
      </button>
    </p>
  );
}

interface SyncStatusTableProps {
  readonly status: DatabaseStatus;
  readonly syncStatus: SyncStatus | undefined;
}

function SyncStatusTable({ status, syncStatus }: SyncStatusTableProps): JSX.Element {
  const facts: [string, string][] = [
    ["Account", status.account?.login ?? ""],
    ["Server", new URL(status.account?.server ?? location.origin, location.href).host],
    ["Encryption", encryptionText(status)],
  ];
  if (syncStatus !== undefined) {
    facts.push(
      ["On the server", counted(syncStatus.serverMessagesCount, "change")],
      ["In total", counted(syncStatus.totalMessagesCount, "change")],
    );
    const { pendingDownloadCount } = syncStatus;
    if (pendingDownloadCount > 0) facts.push(["To download", count(pendingDownloadCount)]);
  }
  facts.push(["To upload", count(syncStatus?.pendingUploadCount ?? status.unsentCount)]);
  return (
    <dl class="facts" data-testid="sync-status">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function encryptionText({ endToEndEncrypted }: DatabaseStatus): string {
  return endToEndEncrypted ? "End-to-end" : "In transit and at rest";
}

interface DevicesProps {
  readonly devices: readonly DeviceInfo[];
  readonly isLoading: boolean;
  readonly onRevoke: (device: DeviceInfo) => void;
}

function Devices({ devices, isLoading, onRevoke }: DevicesProps): JSX.Element | null {
  const [asked, setAsked] = useState<string>();
  if (devices.length === 0 && !isLoading) return null;
  return (
    <section>
      <h3>Devices</h3>
      {isLoading && <p class="muted">Loading…</p>}
      <ul class="devices" data-testid="devices">
        {devices.map((device) => (
          <li key={device.id}>
            <Icon name="device" />
            <div class="device-text">
              <strong>{device.name || "Unnamed device"}</strong>
              <small>{deviceFacts(device)}</small>
            </div>
            {device.isCurrent && <span class="badge">This device</span>}
            {!device.isCurrent && asked !== device.id && (
              <button type="button" class="button button-small" onClick={() => setAsked(device.id)}>
                Remove
              </button>
            )}
            {asked === device.id && (
              <button
                type="button"
                class="button button-small button-danger"
                onClick={() => {
                  setAsked(undefined);
                  onRevoke(device);
                }}
              >
                Confirm removal
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function deviceFacts(device: DeviceInfo): string {
  const facts = [
    device.lastSeenMs === 0
      ? "never synced"
      : `last seen ${describeAgo(device.lastSeenMs, Date.now())}`,
  ];
  if (device.unsentCount > 0) facts.push(`${count(device.unsentCount)} to upload`);
  if (device.pendingDownloadCount > 0) {
    facts.push(`${count(device.pendingDownloadCount)} to download`);
  }
  return facts.join(" · ");
}

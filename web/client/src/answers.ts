/** What the owner does for each call. */
import type { Conflict, HistoryEntry, Progress, Receipt, SyncReport } from "./api.js";
import { changePassword, listDevices, makeAccount, revokeDevice, type Remote } from "./accounts.js";
import type { Answered, CallName } from "./calls.js";
import type { Replica } from "./engine.js";
import { errorInfo, failure } from "./errors.js";
import type { CallOf } from "./messages.js";
import { prepare } from "./preparing.js";
import { readStatus } from "./standing.js";
import type { Statements } from "./statements.js";
import type { Syncing } from "./syncing.js";

export interface AnswersParts {
  readonly replica: Replica;
  readonly statements: Statements;
  readonly syncing: Syncing;
  /** What the file says of itself may be different now. */
  stands(): void;
  /** Any table may be different now. */
  wrote(): void;
  progress(tab: string, number: number, progress: Progress): void;
}

export type Answers = {
  readonly [K in CallName]: (
    call: CallOf<K>,
    signal: AbortSignal,
  ) => Answered<K> | Promise<Answered<K>>;
};

export function answers(parts: AnswersParts): Answers {
  return { ...sqlAnswers(parts), ...accountAnswers(parts), ...fileAnswers(parts) };
}

type Some<K extends CallName> = Pick<Answers, K>;

function sqlAnswers({ replica, statements, syncing, wrote, stands }: AnswersParts): Some<
  | "prepare" | "run" | "runMany" | "read" | "begin" | "runIn" | "runManyIn" | "commit" | "rollback"
  | "track"
> {
  return {
    run: statements.run,
    runMany: statements.runMany,
    begin: statements.begin,
    runIn: statements.runIn,
    runManyIn: statements.runManyIn,
    commit: statements.commit,
    rollback: statements.rollback,
    async read(call) {
      const packed = await statements.run({ ...call, name: "run" });
      return { packed, tables: replica.tablesRead(call.given.sql) };
    },
    async prepare({ given }) {
      await statements.alone(() => prepare(replica, given));
      wrote();
      stands();
      syncing.start(given.autoSync);
    },
    async track({ given }) {
      await statements.alone(() => replica.track(given.tables));
      wrote();
    },
  };
}

function accountAnswers({ replica, syncing, stands, progress }: AnswersParts): Some<
  "sync" | "signUp" | "signIn" | "signOut" | "changePassword" | "devices" | "revoke" | "receipt"
> {
  const signIn = async ({ given, again }: CallOf<"signIn"> | CallOf<"signUp">): Promise<void> => {
    const { server, login, password, device } = given;
    await syncing.exclusively(async () => {
      const { account } = readStatus(replica).file;
      if (again && account?.server === server && account.login === login) {
        return;
      }
      await replica.signIn(server, login, password, device ?? "");
      stands();
    });
    syncing.mended();
  };
  return {
    sync: ({ tab, number }, signal): Promise<SyncReport> =>
      syncing.sync((now) => progress(tab, number, now), signal),
    async signUp(call) {
      await makeAccount(call.given.server, call.given.login, call.given.password);
      await signIn(call);
    },
    signIn,
    signOut: () =>
      syncing.exclusively(async () => {
        await forgetDevice(replica);
        replica.signOut();
        stands();
        syncing.signedOut();
      }),
    changePassword: async ({ given }) => {
      const { account } = readStatus(replica).file;
      if (account === undefined) {
        throw noAccount();
      }
      await changePassword(account.server, { login: account.login, ...given });
    },
    devices: () => listDevices(remote(replica)),
    revoke: ({ given }) => revokeDevice(remote(replica), given.deviceId),
    receipt: () =>
      syncing.exclusively(async () => JSON.parse(await replica.receipt()) as Receipt),
  };
}

function fileAnswers({ replica, statements, syncing, wrote, stands }: AnswersParts): Some<
  "phrase" | "createPhrase" | "usePhrase" | "history" | "conflicts" | "restore" | "export" | "import"
> {
  return {
    phrase: () => replica.phrase(),
    async createPhrase() {
      const words = await statements.alone(() => replica.createPhrase());
      stands();
      syncing.mended();
      return words;
    },
    async usePhrase({ given }) {
      await statements.alone(() => replica.usePhrase(given.words));
      stands();
      syncing.mended();
    },
    history: ({ given }) =>
      statements.alone(
        () => JSON.parse(replica.history(given.table, given.key)) as HistoryEntry[],
      ),
    conflicts: () => statements.alone(() => JSON.parse(replica.conflicts()) as Conflict[]),
    restore: ({ given, again }) =>
      statements.alone(() => {
        try {
          replica.restore(given.conflictId);
        } catch (thrown) {
          // A lost edit that was put back is none any more.
          if (!again || errorInfo(thrown).code !== "no_conflict") {
            throw thrown;
          }
        }
        wrote();
      }),
    export: () => statements.alone(() => replica.export()),
    async import({ given }) {
      const free = await syncing.hold();
      try {
        statements.abandon();
        await replica.import(given.file);
        statements.renew();
        wrote();
        stands();
      } finally {
        free();
      }
      syncing.mended();
    },
  };
}

/** Takes the registration back at the server, too, if that can be reached. */
async function forgetDevice(replica: Replica): Promise<void> {
  if (replica.token() === undefined) {
    return;
  }
  try {
    const devices = await listDevices(remote(replica));
    const current = devices.find((device) => device.isCurrent);
    if (current !== undefined) {
      await revokeDevice(remote(replica), current.id);
    }
  } catch {
    // Signing out works offline. The token is forgotten here; others can revoke the device.
  }
}

function remote(replica: Replica): Required<Remote> {
  const { account } = readStatus(replica).file;
  const token = replica.token();
  if (account === undefined || token === undefined) {
    throw noAccount();
  }
  return { server: account.server, token };
}

function noAccount(): Error {
  return failure("no_server", "no account yet: sign up or sign in");
}

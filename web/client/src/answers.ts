/** What the owner does for each call. */
import { changePassword, listDevices, makeAccount, revokeDevice, type Remote } from "./accounts.js";
import type { FileKey, Progress } from "./api.js";
import type { Answered, CallName } from "./calls.js";
import { errorInfo, failure } from "./errors.js";
import type { OpenFile } from "./file.js";
import { inTurns, type Lane } from "./lane.js";
import type { CallOf } from "./messages.js";
import { reaching } from "./origins.js";
import { prepare } from "./preparing.js";
import { readStatus } from "./standing.js";
import type { Statements } from "./statements.js";
import type { Syncing } from "./syncing.js";

export interface AnswersParts {
  readonly file: OpenFile;
  readonly turns: Lane;
  readonly statements: Statements;
  readonly syncing: Syncing;
  /** What the file says of itself may be different now. */
  stands(): void;
  /** Any table may be different now. */
  wrote(): void;
  /** All tabs are to know. */
  rekeyed(key: FileKey | null): void;
  progress(tab: string, number: number, progress: Progress): void;
}

export type Answers = {
  readonly [K in CallName]: (
    call: CallOf<K>,
    signal: AbortSignal,
  ) => Answered<K> | Promise<Answered<K>>;
};

export function answers(parts: AnswersParts): Answers {
  return {
    ...sqlAnswers(parts),
    ...accountAnswers(parts),
    ...changeAnswers(parts),
    ...fileAnswers(parts),
  };
}

type Sql =
  | "prepare" | "track" | "read" | "run" | "runMany"
  | "begin" | "runIn" | "runManyIn" | "commit" | "rollback";

function sqlAnswers(parts: AnswersParts): Pick<Answers, Sql> {
  const { file, statements, syncing } = parts;
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
      return { packed, tables: file.tablesRead(call.given.sql) };
    },
    async prepare({ given }) {
      await statements.alone(() => prepare(file, given));
      parts.wrote();
      parts.stands();
      syncing.start(given.autoSync);
    },
    async track({ given }) {
      await statements.alone(() => file.track(given.tables));
      parts.wrote();
    },
  };
}

type Account =
  | "sync" | "signUp" | "signIn" | "signOut" | "changePassword" | "devices" | "revoke" | "receipt";

function accountAnswers(parts: AnswersParts): Pick<Answers, Account> {
  const { file, turns, syncing, stands } = parts;
  const signIn = async (
    { given, again }: CallOf<"signIn"> | CallOf<"signUp">,
    isNew: boolean,
  ): Promise<void> => {
    const { server, plain = false, ...credentials } = given;
    await syncing.exclusively(async () => {
      const { account } = readStatus(file).told;
      if (again && account?.server === server && account.login === credentials.login) {
        return;
      }
      const registration = { ...credentials, isNew: isNew || plain };
      const signedIn = inTurns(turns, (mine) => file.signIn(registration, server, mine));
      await reaching(server, signedIn);
      stands();
    });
    syncing.mended();
  };
  return {
    sync: ({ tab, number }, signal) =>
      syncing.sync((now) => parts.progress(tab, number, now), signal),
    async signUp(call) {
      const { server, login, password, sealed } = call.given;
      await makeAccount(server, login, password);
      if (sealed === true) {
        // Before the first sync, which signing in begins.
        await parts.statements.alone(() => file.phrase() ?? file.createPhrase());
      }
      await signIn(call, true);
    },
    signIn: (call) => signIn(call, false),
    signOut: () =>
      syncing.quietly(async () => {
        await forgetDevice(file);
        await parts.statements.alone(() => file.signOut());
        stands();
        syncing.signedOut();
      }),
    changePassword: async ({ given }) => {
      const { login, ...remote } = account(file);
      await changePassword(remote, { login, ...given });
    },
    devices: () => listDevices(account(file)),
    revoke: ({ given }) => revokeDevice(account(file), given.deviceId),
    receipt: () => inTurns(turns, (mine) => file.receipt(mine)),
  };
}

type Whole =
  | "phrase" | "createPhrase" | "beginAccount" | "usePhrase" | "export" | "import" | "rekey";

function fileAnswers(parts: AnswersParts): Pick<Answers, Whole> {
  const { file, statements, syncing } = parts;
  const withPhrase = async <T>(give: () => T): Promise<T> => {
    const given = await statements.alone(give);
    parts.stands();
    syncing.mended();
    return given;
  };
  return {
    phrase: () => statements.alone(() => file.phrase()),
    createPhrase: () => withPhrase(() => file.createPhrase()),
    beginAccount: () => withPhrase(() => file.beginAccount()),
    usePhrase: ({ given }) => withPhrase(() => file.usePhrase(given.words)),
    export: () => syncing.quietly(() => statements.alone(() => file.export())),
    async import({ given }) {
      await syncing.quietly(() =>
        statements.alone(() => {
          file.import(given.file);
          statements.renew();
        }),
      );
      parts.wrote();
      parts.stands();
      syncing.mended();
    },
    async rekey({ given: { from, to } }) {
      await syncing.quietly(() =>
        statements.alone(() => {
          file.rekey(from ?? undefined, to ?? undefined);
          // Before anybody may have to open the file anew.
          parts.rekeyed(to);
        }),
      );
      parts.stands();
    },
  };
}

type Changes =
  | "edit" | "history" | "record" | "deleted" | "conflicts" | "restore" | "dismiss"
  | "held" | "give" | "join" | "letGo";

function changeAnswers(parts: AnswersParts): Pick<Answers, Changes> {
  const { file, statements } = parts;
  /** Another owner may have done it. */
  const once = (again: boolean, settle: () => void): Promise<void> =>
    statements.alone(() => {
      try {
        settle();
      } catch (thrown) {
        // What was settled is none any more.
        if (!again || errorInfo(thrown).code !== "no_conflict") {
          throw thrown;
        }
      }
      parts.wrote();
    });
  return {
    edit: ({ given }) =>
      statements.alone(() => {
        const outcome = file.edit(given);
        parts.wrote();
        return outcome;
      }),
    history: ({ given }) => statements.alone(() => file.history(given.table, given.key)),
    record: () => statements.alone(() => file.record()),
    deleted: ({ given }) => statements.alone(() => file.deleted(given.table, given.countMax)),
    conflicts: () => statements.alone(() => file.conflicts()),
    restore: ({ given, again }) => once(again, () => file.restore(given.conflictId)),
    dismiss: ({ given, again }) => once(again, () => file.dismiss(given.conflictId)),
    held: () => statements.alone(() => file.held()),
    give: ({ given, again }) =>
      once(again, () => file.give(given.heldId, given.column, given.value)),
    join: ({ given, again }) => once(again, () => file.join(given.heldId)),
    letGo: ({ given, again }) => once(again, () => file.letGo(given.heldId)),
  };
}

/** Takes the registration back at the server, too, if that can be reached. */
async function forgetDevice(file: OpenFile): Promise<void> {
  if (file.token() === undefined) {
    return;
  }
  try {
    const devices = await listDevices(account(file));
    const current = devices.find((device) => device.isCurrent);
    if (current !== undefined) {
      await revokeDevice(account(file), current.id);
    }
  } catch {
    // Signing out works offline. The token is forgotten here; others can revoke the device.
  }
}

function account(file: OpenFile): Required<Remote> & { readonly login: string } {
  const { account } = readStatus(file).told;
  const token = file.token();
  if (account === undefined || token === undefined) {
    throw failure("no_server", "no account yet: sign up or sign in");
  }
  return { ...account, token };
}

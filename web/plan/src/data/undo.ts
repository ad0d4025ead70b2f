/**
 * The undo stack: the user's steps, each with the SQL that reverts it.
 *
 * - Steps run one after the other, each in one transaction, so each runs completely or not at all.
 * - A step that failed is not on the stack. A step that cannot be undone leaves the stack.
 * - A new step clears the steps that could be redone.
 */
import type { SqlValue } from "@warren/client";

/** One statement, run once for each list of parameters. */
export interface BatchStatement {
  readonly sql: string;
  readonly rows: readonly (readonly SqlValue[])[];
}

export interface UndoableStep {
  /** The text of the toast: "Deleted “Milk”". */
  readonly label: string;
  readonly apply: readonly BatchStatement[];
  readonly revert: readonly BatchStatement[];
}

export interface UndoStack {
  /** Runs the step and puts it on the stack. */
  perform(step: UndoableStep): Promise<void>;
  /** Puts a step on the stack that has already run, for example in batches. */
  remember(step: UndoableStep): void;
  /** Reverts the last step; `undefined` if there is none. */
  undo(): Promise<UndoableStep | undefined>;
  redo(): Promise<UndoableStep | undefined>;
  /** Clears the stack, because the database's content was replaced. */
  clear(): void;
}

const STEPS_MAX = 200;

export function createUndo(
  run: (statements: readonly BatchStatement[]) => Promise<void>,
): UndoStack {
  const done: UndoableStep[] = [];
  const undone: UndoableStep[] = [];
  let queue: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  }
  function remember(step: UndoableStep): void {
    done.push(step);
    if (done.length > STEPS_MAX) done.shift();
    undone.length = 0;
  }
  return {
    remember,
    perform: (step) =>
      inTurn(async () => {
        await run(step.apply);
        remember(step);
      }),
    undo: () =>
      inTurn(async () => {
        const step = done.pop();
        if (step === undefined) return undefined;
        await run(step.revert);
        undone.push(step);
        return step;
      }),
    redo: () =>
      inTurn(async () => {
        const step = undone.pop();
        if (step === undefined) return undefined;
        await run(step.apply);
        done.push(step);
        return step;
      }),
    clear: () => {
      done.length = 0;
      undone.length = 0;
    },
  };
}

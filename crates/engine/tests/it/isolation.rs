//! Tests that a failing transaction leaves out exactly its own effects, whatever it and its
//! neighbors do.
//!
//! Thousands of random transactions run in large batches, and in a model, one after the other. The
//! stored rows, each caller's result and the number of times that each closure ran must agree.

mod model;
mod plan;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{Database, Durability, Error, WriteFuture, WriterLimits};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::seed::random;
use crate::{EngineFixture, encryption, fixture, hold, number};
use model::{SCHEMA, TableModel};
use plan::{PlannedFailure, PlannedOutcome, PlannedWrite, TransactionPlan, TransactionReply};

/// Shares of the kinds of random transactions.
#[derive(Clone, Copy, Debug, Default)]
struct FailureMix {
    /// Share of the transactions that fail, or panic, after they may have written.
    failing: f64,
    /// Share of the transactions that fail if they run a second time.
    failing_again: f64,
    /// Share of the transactions that use savepoints. After the first of them, no transactions
    /// share an undo point any more.
    with_savepoints: f64,
}

impl FailureMix {
    fn plan(self, id: i64, random: &mut StdRng) -> TransactionPlan {
        let end = if random.random_bool(self.failing) {
            [PlannedOutcome::Fails, PlannedOutcome::Panics, PlannedOutcome::Orphan]
                [random.random_range(0..3)]
        } else if random.random_bool(self.failing_again) {
            [PlannedOutcome::FailsAgain, PlannedOutcome::PanicsAgain][random.random_range(0..2)]
        } else if random.random_bool(0.05) {
            PlannedOutcome::FailsFirst
        } else {
            PlannedOutcome::Success
        };
        let planned = if random.random_bool(self.with_savepoints) {
            PlannedWrite::Savepoints { is_left_open: random.random() }
        } else {
            match random.random_range(0..200) {
                0 | 1 => PlannedWrite::Table,
                2..10 => PlannedWrite::UserVersion,
                10..20 => PlannedWrite::Blob,
                20..40 => PlannedWrite::Family,
                40..60 => PlannedWrite::Look,
                60..80 => PlannedWrite::NoRow,
                80..120 => PlannedWrite::BareTransfer,
                _ => PlannedWrite::Transfer,
            }
        };
        TransactionPlan::random(id, planned, end, random)
    }

    /// Runs `count` such transactions and compares everything. Returns the number of closure calls.
    fn check(self, count: usize, limits: WriterLimits) -> usize {
        let mut random = random();
        let fixture = fixture();
        let database = open(&fixture, limits);
        let release = hold(&database);
        let plans: Vec<TransactionPlan> =
            (1..=count).map(|id| self.plan(i64::try_from(id).unwrap(), &mut random)).collect();
        let answers: Vec<_> = plans.iter().map(|plan| submit(&database, plan)).collect();
        drop(release);

        let mut model = TableModel::new();
        let mut committed = 1;
        for (plan, answer) in plans.iter().zip(answers) {
            let answer = answer.wait();
            committed += u64::from(answer.is_ok());
            self.check_answer(plan, &answer, &mut model);
        }
        let stats = database.stats();
        assert_eq!(stats.transactions, committed, "{self:?}");
        assert_eq!(stats.transactions + stats.failed, count as u64 + 1, "{self:?}");
        fixture.databases.shutdown();
        let (db, _) = engine::open_connection(
            database.path(),
            &encryption(),
            database.profile(),
            true,
            false,
        )
        .unwrap();
        assert_eq!(TableModel::read(&db), model, "{self:?}");
        plans.iter().map(|plan| plan.runs.load(Ordering::SeqCst)).sum()
    }

    fn check_answer(
        self,
        plan: &TransactionPlan,
        answer: &Result<TransactionReply, PlannedFailure>,
        model: &mut TableModel,
    ) {
        let runs = plan.runs.load(Ordering::SeqCst);
        let context = format!("{plan:?} of {self:?} heard {answer:?}");
        let mut after = model.clone();
        if plan.end != PlannedOutcome::FailsFirst {
            plan.apply(&mut after);
        }
        let seen = TransactionReply {
            id: plan.id,
            run: runs,
            balance: after.balances[usize::from(plan.to)],
        };
        match (plan.end, answer) {
            (PlannedOutcome::Success, Ok(answer)) => {
                assert_eq!(*answer, seen, "{context}");
                *model = after;
            }
            (
                PlannedOutcome::Fails | PlannedOutcome::FailsFirst,
                Err(PlannedFailure::Chosen(answer)),
            ) => {
                assert_eq!((runs, answer.id), (1, plan.id), "{context}");
                // A neighbor that failed on its second run may have been rolled back since, and
                // with it values that this transaction read.
                assert!(self.failing_again > 0.0 || *answer == seen, "{context}");
            }
            (PlannedOutcome::Panics, Err(PlannedFailure::Engine(Error::Panicked))) => {
                assert_eq!(runs, 1, "{context}");
            }
            (PlannedOutcome::Orphan, Err(PlannedFailure::Engine(Error::Sqlite { source, .. }))) => {
                let code = Some(rusqlite::ErrorCode::ConstraintViolation);
                assert_eq!((runs, source.sqlite_error_code()), (1, code), "{context}");
            }
            (PlannedOutcome::FailsAgain | PlannedOutcome::PanicsAgain, Ok(answer)) => {
                assert_eq!((*answer, runs), (seen, 1), "{context}");
                *model = after;
            }
            (PlannedOutcome::FailsAgain, Err(PlannedFailure::Chosen(answer))) => {
                assert_eq!((answer.id, answer.run, runs), (plan.id, 2, 2), "{context}");
            }
            (PlannedOutcome::PanicsAgain, Err(PlannedFailure::Engine(Error::Panicked))) => {
                assert_eq!(runs, 2, "{context}");
            }
            _ => unreachable!("{context}"),
        }
    }
}

/// Limits under which batches are full, however slow the machine is.
const FULL_BATCHES: WriterLimits = WriterLimits {
    queue_count_max: 10_000,
    batch_count_max: 1_000,
    batch_time_max: Duration::from_mins(1),
};

fn open(fixture: &EngineFixture, limits: WriterLimits) -> Arc<Database> {
    fixture.open_with("a.db", |options| {
        options.migrations = &[SCHEMA];
        options.limits = limits;
    })
}

fn submit(
    database: &Database,
    plan: &TransactionPlan,
) -> WriteFuture<TransactionReply, PlannedFailure> {
    let plan = plan.clone();
    let durability = if plan.id % 100 == 0 { Durability::Disk } else { Durability::Os };
    database.write(durability, move |db| plan.run(db))
}

const FAILING: [f64; 4] = [0.001, 0.01, 0.1, 0.5];

#[test]
fn whatever_fails_leaves_exactly_its_own_effects_out() {
    const COUNT: usize = 4_000;
    for failing in FAILING {
        let runs = FailureMix { failing, ..FailureMix::default() }.check(COUNT, FULL_BATCHES);
        // If half of them fail, every transaction soon has an undo point of its own.
        assert!(failing < 0.01 || runs > COUNT + COUNT / 50, "{runs} runs at {failing}");
    }
}

#[test]
fn so_it_does_in_batches_of_every_length() {
    let by_count = |batch_count_max| WriterLimits { batch_count_max, ..FULL_BATCHES };
    // Transactions for which no time was left return to the queue.
    let by_time = |us| WriterLimits { batch_time_max: Duration::from_micros(us), ..FULL_BATCHES };
    let limits = [by_count(1), by_count(2), by_count(3), by_count(10), by_time(0), by_time(200)];
    for limits in limits {
        for failing in [0.02, 0.5] {
            let mix = FailureMix { failing, failing_again: 0.02, with_savepoints: 0.002 };
            mix.check(400, limits);
        }
    }
}

#[test]
fn so_it_does_beside_savepoints_of_closures() {
    for failing in FAILING {
        for with_savepoints in [0.002, 0.2] {
            FailureMix { failing, with_savepoints, failing_again: 0.01 }.check(1_000, FULL_BATCHES);
        }
    }
}

#[test]
fn so_it_does_beside_closures_that_do_not_do_the_same_twice() {
    for failing in FAILING {
        for failing_again in [0.01, 0.3] {
            FailureMix { failing, failing_again, ..FailureMix::default() }
                .check(2_000, FULL_BATCHES);
        }
    }
}

/// Makes enough transactions fail that each later one gets an undo point of its own.
fn fail_often(database: &Database) {
    let fail = || -> WriteFuture<(), Error> {
        database.write(Durability::Os, |db| {
            db.execute("UPDATE account SET balance = 0", [])?;
            Err(Error::Busy)
        })
    };
    let answers: Vec<_> = (0..1_000).map(|_| fail()).collect();
    for answer in answers {
        answer.wait().unwrap_err();
    }
}

#[test]
fn the_first_savepoint_of_all_may_be_in_a_transaction_that_fails() {
    for is_ok in [true, false] {
        let fixture = fixture();
        let database = open(&fixture, FULL_BATCHES);
        fail_often(&database);
        let before = database.stats();
        let release = hold(&database);
        let answers = [1_i64, 2].map(|amount| -> WriteFuture<(), Error> {
            database.write(Durability::Os, move |db| {
                db.execute("UPDATE account SET balance = balance + ?1 WHERE id = 0", [amount])?;
                if amount == 1 {
                    return Ok(());
                }
                db.execute_batch("SAVEPOINT own; UPDATE account SET balance = 0 WHERE id = 0")?;
                if is_ok { Ok(db.execute_batch("ROLLBACK TO own")?) } else { Err(Error::Busy) }
            })
        });
        drop(release);
        assert_eq!(answers.map(|answer| answer.wait().is_ok()), [true, is_ok]);
        let balance = database
            .read::<_, Error>(|db| Ok(number(db, "SELECT balance FROM account WHERE id = 0")));
        assert_eq!(balance.unwrap(), if is_ok { 1_003 } else { 1_001 });
        let stats = database.stats();
        assert_eq!(stats.transactions - before.transactions, 2 + u64::from(is_ok));
        assert_eq!(stats.failed - before.failed, u64::from(!is_ok));
    }
}

#[test]
fn a_savepoint_that_is_left_open_is_out_of_the_next_ones_reach() {
    let fixture = fixture();
    let database = open(&fixture, FULL_BATCHES);
    let release = hold(&database);
    let answers = [
        "UPDATE account SET balance = balance + 1 WHERE id = 0; SAVEPOINT own",
        "UPDATE account SET balance = balance + 2 WHERE id = 0",
        "ROLLBACK TO own",
        "UPDATE account SET balance = balance + 4 WHERE id = 0",
        "RELEASE own",
    ]
    .map(|sql| -> WriteFuture<(), Error> {
        database.write(Durability::Os, move |db| Ok(db.execute_batch(sql)?))
    });
    drop(release);
    assert_eq!(answers.map(|answer| answer.wait().is_ok()), [true, true, false, true, false]);
    let balance = database
        .read::<_, Error>(|db| Ok(number(db, "SELECT balance FROM account WHERE id = 0")))
        .unwrap();
    assert_eq!(balance, 1_007);
}

/// SQLite does not count changes that an INSERT makes to the table of AUTOINCREMENT's counters.
#[test]
fn an_ignored_insert_that_moved_a_counter_is_taken_back() {
    static IGNORED: engine::StaticStatement =
        engine::StaticStatement::new("INSERT OR IGNORE INTO t (x) VALUES (1)");
    const SCHEMA: engine::Migration = engine::Migration {
        version: 1,
        sql: "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x UNIQUE);
              INSERT INTO t (x) VALUES (1)",
    };
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.migrations = &[SCHEMA]);
    let failing = database.write::<(), Error, _>(Durability::Os, |db| {
        assert_eq!(db.statement(&IGNORED)?.execute([])?, 0);
        Err(Error::Busy)
    });
    failing.wait().unwrap_err();
    let counter =
        database.read::<_, Error>(|db| Ok(number(db, "SELECT seq FROM sqlite_sequence"))).unwrap();
    assert_eq!(counter, 1);
}

#[test]
fn a_closure_runs_again_only_because_of_a_neighbour() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let runs = Arc::new([const { AtomicUsize::new(0) }; 4]);
    let release = hold(&database);
    let answers = [0, 1, 2, 3].map(|index: u8| {
        let runs = Arc::clone(&runs);
        database.write::<usize, Error, _>(Durability::Os, move |db| {
            let run = runs[usize::from(index)].fetch_add(1, Ordering::SeqCst) + 1;
            db.execute("INSERT INTO t (x) VALUES (?1)", [index])?;
            if index == 2 { Err(Error::Busy) } else { Ok(run) }
        })
    });
    drop(release);
    let answers = answers.map(|answer| answer.wait().ok());
    assert_eq!(answers, [Some(2), Some(2), None, Some(1)]);
    assert_eq!([0, 1, 2, 3].map(|index| runs[index].load(Ordering::SeqCst)), [2, 2, 1, 1]);
}

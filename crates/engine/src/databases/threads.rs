//! Runs the threads that databases share: workers, flushers, and threads that wait for a time.
//!
//! # Invariants
//! - A thread ends once the queue that it waits for has stopped.
//!
//! # Not here
//! - The work of a database on its turn → `database.rs`. The order of work → `write/run_queue.rs`.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::database::{Database, EngineContext};
use crate::error::{Result, io};
use crate::maintenance::idle::IdleWatcher;
use crate::maintenance::scheduler::{SlowTask, TaskScheduler, TimerTask};
use crate::write::run_queue::RunQueue;

/// The number of threads that wait for the disk. The file system combines their concurrent flushes
/// into one write.
pub(super) const FLUSHERS_COUNT: usize = 4;

impl EngineContext {
    /// Stops the queues, so that the threads end.
    pub(super) fn stop(&self) {
        self.run_queue.stop();
        self.flush_queue.stop();
        self.scheduler.stop();
        self.idle_watcher.stop();
    }
}

pub(super) fn spawn_threads(
    workers_count: usize,
    context: &EngineContext,
) -> Result<Vec<JoinHandle<()>>> {
    let EngineContext { run_queue, flush_queue, scheduler, idle_watcher, .. } = context;
    let (timers, scheduler, idle_watcher) =
        (Arc::clone(scheduler), Arc::clone(scheduler), Arc::clone(idle_watcher));
    let timers = spawn("timers".to_owned(), move || run_timers(&timers));
    let scheduler = spawn("maintenance".to_owned(), move || run_slow_tasks(&scheduler));
    let idle_watcher = spawn("idle".to_owned(), move || run_idle(&idle_watcher));
    let workers = (0..workers_count).map(|index| {
        let run_queue = Arc::clone(run_queue);
        spawn(format!("writer-{index}"), move || {
            worker_loop(&run_queue, index, Database::process_batch);
        })
    });
    let flushers = (0..FLUSHERS_COUNT).map(|index| {
        let flush_queue = Arc::clone(flush_queue);
        spawn(format!("flusher-{index}"), move || worker_loop(&flush_queue, index, Database::flush))
    });
    [timers, scheduler, idle_watcher].into_iter().chain(workers).chain(flushers).collect()
}

/// Gives each database its turn; `turn` returns whether the database wants another.
fn worker_loop(
    run_queue: &RunQueue<Arc<Database>>,
    worker: usize,
    turn: impl Fn(&Database) -> bool,
) {
    let mut unfinished = None;
    while let Some(database) = run_queue.next(worker, unfinished.take()) {
        unfinished = turn(&database).then_some(database);
    }
}

/// Runs the tasks that may take long.
fn run_slow_tasks(scheduler: &TaskScheduler<Database>) {
    while let Some(task) = scheduler.next_slow() {
        match task {
            SlowTask::Checkpoint(database) => {
                database.upgrade().inspect(|database| database.checkpoint());
            }
            SlowTask::Recover(database) => {
                database.upgrade().inspect(|database| database.recover());
            }
            SlowTask::ScanForDamage(database) => {
                database.upgrade().inspect(|database| database.scan_for_damage());
            }
            SlowTask::RefillReserve(reserve) => {
                if !reserve.refill() {
                    scheduler.refill(reserve);
                }
            }
        }
    }
}

/// Runs the short tasks whose time has come.
fn run_timers(scheduler: &TaskScheduler<Database>) {
    while let Some(task) = scheduler.next_timer() {
        match task {
            TimerTask::ReleaseSnapshots(database) => {
                database.upgrade().inspect(|database| database.release_snapshots());
            }
            TimerTask::ResumeWriter(database) => database.end_stall(),
        }
    }
}

fn run_idle(watcher: &IdleWatcher<Database>) {
    while let Some((batches, database)) = watcher.next() {
        if let Some(database) = database.upgrade() {
            database.check_idle(batches);
        }
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name).spawn(work).map_err(io(Path::new("thread")))
}

//! Breaks the n-th file operation of a scenario in many ways, and judges the result of each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::fixture::{FaultedServer, SendRecord, copy_folder, now};
use crate::scenarios::{FaultRun, FaultScenario};
use crate::shim::operation::{CHANGES, OPEN, RENAME, SYNC, WRITE};
use crate::shim::{FaultMode, ShimControl};

/// One way to break operations.
#[derive(Clone, Copy)]
struct FaultKind {
    name: &'static str,
    mode: FaultMode,
    operations: u32,
    /// The value of `errno`, as Linux numbers it.
    error: i32,
}

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

const fn kind(name: &'static str, mode: FaultMode, operations: u32, error: i32) -> FaultKind {
    FaultKind { name, mode, operations, error }
}

const KINDS: [FaultKind; 11] = [
    kind("EIO once", FaultMode::Once, CHANGES, EIO),
    kind("EIO at a flush", FaultMode::Once, SYNC, EIO),
    kind("EIO at a rename", FaultMode::Once, RENAME, EIO),
    kind("EIO from then on", FaultMode::From, CHANGES, EIO),
    kind("ENOSPC once", FaultMode::Once, CHANGES, ENOSPC),
    kind("ENOSPC from then on", FaultMode::From, CHANGES, ENOSPC),
    kind("EMFILE once", FaultMode::Once, OPEN, EMFILE),
    kind("half written", FaultMode::Short, WRITE, 0),
    kind("killed before it", FaultMode::KillBefore, CHANGES, 0),
    kind("killed after it", FaultMode::KillAfter, CHANGES, 0),
    kind("half written, then killed", FaultMode::KillTorn, WRITE, 0),
];

/// The time limit for a database to recover: it tries after 1 s, after 5 s more, and after 60 s
/// more.
const BACK_TIME_MAX: Duration = Duration::from_secs(90);
const BACK_POLL: Duration = Duration::from_millis(100);

/// The number of simultaneous injections; most of their time is waiting.
const RUNS_AT_ONCE: usize = 4;

/// The outcome of one injection.
#[derive(Default)]
struct InjectionOutcome {
    /// The broken operation; `None` if the scenario has fewer operations.
    hit: Option<String>,
    end: Option<InjectionEnd>,
    wrong: Vec<String>,
    codes: BTreeMap<String, u32>,
    /// The end of the server's log, if the server stays down.
    log: String,
}

/// The number of lines at the end of a log that show what happened.
const LOG_LINES: usize = 5;

fn end_of_log(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InjectionEnd {
    /// The process was killed, as intended.
    Killed,
    /// The server did not start, and reported why.
    NotStarted,
    /// The server takes writes again, without a restart.
    Back,
    /// The fault concerned only the device.
    Device,
    /// The server refuses writes although no operation is broken any more.
    StaysDown,
    /// The server ended without being killed.
    Died,
}

/// Breaks `count_max` operations of the scenario in each way, evenly spread over it; `usize::MAX`
/// breaks all of them. Prints a table, and fails if anything is wrong.
#[expect(clippy::print_stdout, reason = "the table is what a long run is for")]
pub(crate) fn check<S: FaultScenario>(count_max: usize) {
    let root = tempfile::tempdir().unwrap();
    let base = root.path().join("base");
    let scenario = S::prepare(&base);
    let counts = KINDS.map(|kind| count(&scenario, &base, kind));
    let places = counts.map(|count| places(count, count_max));
    let all: Vec<_> = KINDS
        .iter()
        .zip(&places)
        .flat_map(|(kind, places)| places.iter().map(move |at| (*kind, *at)))
        .collect();
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(FaultKind, u64, InjectionOutcome)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..RUNS_AT_ONCE {
            scope.spawn(|| {
                while let Some((kind, at)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = inject(&scenario, &base, *kind, *at);
                    outcomes.lock().unwrap().push((*kind, *at, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    println!("{}", table(S::NAME, counts, &outcomes));
    let wrong: Vec<_> = outcomes
        .iter()
        .filter_map(|(kind, at, outcome)| {
            let InjectionOutcome { hit, end, wrong, codes, log } = outcome;
            let is_down = matches!(end, Some(InjectionEnd::StaysDown | InjectionEnd::Died));
            (is_down || !wrong.is_empty()).then(|| {
                let hit = hit.as_deref().unwrap_or("nothing");
                format!(
                    "{}, {}, {at} ({hit}): {end:?} {wrong:?} {codes:?} {log}",
                    S::NAME,
                    kind.name
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
}

/// Returns up to `count_max` numbers from 1 to `operations`, evenly spread.
pub(crate) fn places(operations: u64, count_max: usize) -> Vec<u64> {
    let count = (count_max as u64).min(operations);
    (0..count).map(|n| 1 + n * operations / count).collect()
}

/// Returns the number of operations of that kind in the scenario.
fn count<S: FaultScenario>(scenario: &S, base: &Path, kind: FaultKind) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let started = InjectedServer::<S>::start(&folder, base, kind, 0);
    let (mut server, mut run) = (started.server.unwrap(), started.run);
    scenario.run(&server, &mut run);
    assert!(server.is_alive());
    started.control.count()
}

/// A server on a copy of the base, or the reason why it did not start.
struct InjectedServer<S> {
    control: ShimControl,
    server: Result<FaultedServer, String>,
    run: FaultRun,
    scenario: std::marker::PhantomData<S>,
}

impl<S: FaultScenario> InjectedServer<S> {
    fn start(folder: &TempDir, base: &Path, kind: FaultKind, at: u64) -> Self {
        let work = folder.path().join("work");
        copy_folder(base, &work);
        let control = ShimControl::new(folder.path());
        let mut run =
            FaultRun { folder: work.clone(), ledger: SendRecord::default(), device_control: None };
        let watched = if S::IS_DEVICE {
            // The server gets a folder elsewhere, so that its operations are not broken, too.
            let server = folder.path().join("server");
            std::fs::create_dir(&server).unwrap();
            std::fs::rename(work.join("data"), server.join("data")).unwrap();
            run.device_control = Some(ShimControl::new(folder.path()));
            server
        } else {
            work
        };
        let environment = if S::IS_DEVICE {
            Vec::new()
        } else {
            control.environment(&watched.join("data"), None)
        };
        control.arm(kind.mode, at, kind.operations, kind.error);
        let server = FaultedServer::start(&watched, environment);
        let server = server.map_err(|(status, said)| format!("{status}: {said}"));
        Self { control, server, run, scenario: std::marker::PhantomData }
    }
}

fn inject<S: FaultScenario>(
    scenario: &S,
    base: &Path,
    kind: FaultKind,
    at: u64,
) -> InjectionOutcome {
    let folder = tempfile::tempdir().unwrap();
    let InjectedServer { control, server, mut run, .. } =
        InjectedServer::<S>::start(&folder, base, kind, at);
    let mut outcome = InjectionOutcome::default();
    let mut left = None;
    let data = if S::IS_DEVICE { folder.path().join("server") } else { run.folder.clone() };
    match server {
        Err(said) => {
            outcome.end = Some(if kind.mode.kills() {
                InjectionEnd::Killed
            } else {
                InjectionEnd::NotStarted
            });
            // A panic is not a clean exit, and an error must contain a code.
            if !kind.mode.kills() && (said.contains("panicked") || !said.contains("\"code\"")) {
                outcome.wrong.push(format!("START: {said}"));
            }
        }
        Ok(mut server) => {
            let mut done = scenario.run(&server, &mut run);
            control.disarm();
            run.device_control = None;
            outcome.end = Some(end(scenario, &mut server, &mut run, &mut done, kind));
            left = Some(done);
            if outcome.end == Some(InjectionEnd::StaysDown) {
                outcome.log = end_of_log(&server.log());
            }
            if server.log().contains("panicked") {
                outcome.wrong.push("PANIC".to_owned());
            }
            if server.is_alive() && !server.stop().is_some_and(|status| status.success()) {
                outcome.wrong.push("STOP: no clean end".to_owned());
            }
        }
    }
    outcome.hit = control.hit();
    control.disarm();
    outcome.wrong.extend(restart_and_check(scenario, &data, &mut run, left));
    outcome.codes = run.ledger.codes;
    outcome
}

/// Returns the state of the server, once no operation is broken any more.
fn end<S: FaultScenario>(
    scenario: &S,
    server: &mut FaultedServer,
    run: &mut FaultRun,
    left: &mut S::Left,
    kind: FaultKind,
) -> InjectionEnd {
    if S::IS_DEVICE {
        return InjectionEnd::Device;
    }
    let until = now() + BACK_TIME_MAX;
    while server.is_alive() {
        if scenario.is_back(server, run, left) {
            return InjectionEnd::Back;
        }
        if now() > until {
            return InjectionEnd::StaysDown;
        }
        thread::park_timeout(BACK_POLL);
    }
    if kind.mode.kills() { InjectionEnd::Killed } else { InjectionEnd::Died }
}

/// Restarts the server with no operation broken, and returns what is wrong.
fn restart_and_check<S: FaultScenario>(
    scenario: &S,
    data: &Path,
    run: &mut FaultRun,
    left: Option<S::Left>,
) -> Vec<String> {
    let server = match FaultedServer::start(data, Vec::new()) {
        Ok(server) => server,
        Err((status, said)) => return vec![format!("RESTART: {status}: {said}")],
    };
    // No work has been done yet, so the scenario must succeed now.
    let left = left.unwrap_or_else(|| scenario.run(&server, run));
    let mut wrong = scenario.check(&server, run, &left);
    if !server.stop().is_some_and(|status| status.success()) {
        wrong.push("STOP after the restart: no clean end".to_owned());
    }
    wrong
}

fn table(
    name: &str,
    counts: [u64; KINDS.len()],
    outcomes: &[(FaultKind, u64, InjectionOutcome)],
) -> String {
    let mut text = format!("\n{name}: {} injections\n", outcomes.len());
    for (kind, operations) in KINDS.iter().zip(counts) {
        let of_kind = || outcomes.iter().filter(|(other, ..)| other.name == kind.name);
        let mut ends: BTreeMap<InjectionEnd, usize> = BTreeMap::new();
        for (.., outcome) in of_kind() {
            if let (Some(end), Some(_)) = (outcome.end, &outcome.hit) {
                *ends.entry(end).or_default() += 1;
            }
        }
        let wrong = of_kind().filter(|(.., outcome)| !outcome.wrong.is_empty()).count();
        let ends: Vec<_> = ends.iter().map(|(end, count)| format!("{end:?} {count}")).collect();
        let (name, ends) = (kind.name, ends.join(", "));
        let count = of_kind().count();
        let row = format!("  {name:28} {count:4} of {operations:4}  wrong {wrong}  {ends}\n");
        text.push_str(&row);
    }
    text
}

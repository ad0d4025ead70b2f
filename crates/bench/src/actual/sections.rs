//! Builds the benchmark's tables.

use std::rc::Rc;
use std::time::Duration;

use super::bench_run::{ActualBenchPart, ActualBenchRun};
use super::import::{self, ImportWorkload};
use super::memory::{self, MESSAGES_PER_SYNC, SYNCS_PER_USER, USERS};
use crate::actual::sizes::{IMPORT, SMALL};
use crate::format::counted;
use crate::measure::RoundSample;
use crate::message_generator::{MESSAGES_PER_TRANSACTION, MessageSchedule};
use crate::service::load_stats::{LoadOperation, ServiceLoad};
use crate::service::systems_under_test::{ClientPool, SystemUnderTest};
use crate::suite::{BenchCase, BenchSection};

/// Messages of a budget that receives small syncs.
pub(super) const SMALL_BUDGET: usize = 1_000;
/// Messages of a budget that was kept for years: the trie grows with the minutes in which messages
/// were created.
const OLD_BUDGET: usize = 40_000;
const TWO_YEARS_MS: u64 = 2 * 365 * 86_400_000;
const OLD: MessageSchedule = MessageSchedule {
    before_ms: TWO_YEARS_MS * MESSAGES_PER_TRANSACTION / OLD_BUDGET as u64,
    ..SMALL
};
/// Messages of a small sync: a transaction, and ten.
const SMALL_MESSAGES: [usize; 2] = [10, 100];
/// The name of the memory table.
pub(super) const MEMORY: &str = "memory";
/// The largest download; larger message counts are measured as imports only.
const DOWNLOAD_MESSAGES_MAX: usize = 40_000;

/// Returns a load in a closed loop.
pub(super) fn load(
    operation: LoadOperation,
    messages: usize,
    seeded: usize,
    pace: MessageSchedule,
) -> ServiceLoad {
    ServiceLoad {
        operation,
        messages,
        limit: seeded,
        rate: None,
        connections: None,
        seeded: seeded as u64,
        pace,
    }
}

/// Returns the sections that the plan selects.
pub(super) fn for_run<'a>(run: &'a ActualBenchRun<'_>) -> anyhow::Result<Vec<BenchSection<'a>>> {
    let plan = run.plan;
    let mut sections = Vec::new();
    for &messages in plan.messages.iter().filter(|_| plan.wants(ActualBenchPart::Bulk)) {
        let count = counted(messages, "message", "messages");
        let title = format!("{count} in one request, into an empty budget");
        sections.push(imports(run, format!("bulk-{messages}"), title, (messages, messages))?);
    }
    let page = plan.page;
    let paged = plan.messages.iter().filter(|messages| **messages > page);
    for &messages in paged.filter(|_| plan.wants(ActualBenchPart::Pages)) {
        let count = counted(messages, "message", "messages");
        let title = format!("{count} in consecutive requests of {page}");
        sections.push(imports(run, format!("pages-{messages}"), title, (messages, page))?);
    }
    if plan.wants(ActualBenchPart::Small) {
        for messages in SMALL_MESSAGES {
            sections.extend(plan.users.iter().map(|&users| small(run, messages, users)));
        }
    }
    if plan.wants(ActualBenchPart::Empty) {
        sections.extend(empty(run));
    }
    let sizes = plan.messages.iter().copied().filter(|&messages| messages <= DOWNLOAD_MESSAGES_MAX);
    if plan.wants(ActualBenchPart::Download) {
        sections.extend(sizes.map(|messages| download(run, messages)));
    }
    if plan.wants(ActualBenchPart::Memory) {
        sections.extend(memory(run)?);
    }
    Ok(sections)
}

/// Returns a section in which each system under test runs the same measurement.
fn section<'a>(
    run: &'a ActualBenchRun<'_>,
    name: String,
    unit: &'static str,
    title: String,
    measure: impl Fn(SystemUnderTest<'_>, Duration) -> anyhow::Result<RoundSample> + Clone + 'a,
) -> BenchSection<'a> {
    let cases = run.peers().into_iter().map(|(name, peer)| {
        let measure = measure.clone();
        BenchCase::new(name, move |duration| measure(peer, duration))
    });
    BenchSection { name, unit, title, cases: cases.collect() }
}

fn imports<'a>(
    run: &'a ActualBenchRun<'_>,
    name: String,
    title: String,
    (messages, page): (usize, usize),
) -> anyhow::Result<BenchSection<'a>> {
    let import = Rc::new(ImportWorkload::new(messages, page)?);
    let measure =
        move |peer: SystemUnderTest<'_>, duration| import::measure(run, peer, &import, duration);
    Ok(section(run, name, "messages", title, measure))
}

/// Returns a section that measures a closed loop of users with one device each.
fn loops<'a>(
    run: &'a ActualBenchRun<'_>,
    (name, unit, title): (String, &'static str, String),
    users: usize,
    load: ServiceLoad,
) -> BenchSection<'a> {
    let pool = ClientPool { users, devices: 1 };
    section(run, name, unit, title, move |peer, duration| {
        run.fixture.measure(peer, pool, load, duration)
    })
}

fn small<'a>(run: &'a ActualBenchRun<'_>, messages: usize, users: usize) -> BenchSection<'a> {
    let who = counted(users, "user", "users");
    let title = format!("syncs of {messages} new messages by {who}, each waiting for the response");
    let name = format!("small-{messages}-{users}");
    let load = load(LoadOperation::Sync, messages, SMALL_BUDGET, SMALL);
    loops(run, (name, "syncs", title), users, load)
}

fn empty<'a>(run: &'a ActualBenchRun<'_>) -> [BenchSection<'a>; 2] {
    let section = |name: &str, what: &str, messages, pace| {
        let title = format!("syncs without new messages, by one user, with {what}");
        let load = load(LoadOperation::Sync, 0, messages, pace);
        loops(run, (name.to_owned(), "syncs", title), 1, load)
    };
    let old = format!("{OLD_BUDGET} messages spread over two years");
    [
        section("empty-small", &format!("{SMALL_BUDGET} messages of one day"), SMALL_BUDGET, SMALL),
        section("empty-years", &old, OLD_BUDGET, OLD),
    ]
}

fn download<'a>(run: &'a ActualBenchRun<'_>, messages: usize) -> BenchSection<'a> {
    let count = counted(messages, "message", "messages");
    let title = format!("downloads of {count} by a device that has none of them");
    let load = load(LoadOperation::Whole, 0, messages, IMPORT);
    loops(run, (format!("download-{messages}"), "downloads", title), 1, load)
}

/// Returns the memory section, which uses the largest import.
fn memory<'a>(run: &'a ActualBenchRun<'_>) -> anyhow::Result<Option<BenchSection<'a>>> {
    let Some(&messages) = run.plan.messages.iter().max() else { return Ok(None) };
    let import = Rc::new(ImportWorkload::new(messages, messages)?);
    let count = counted(messages, "message", "messages");
    let title = format!(
        "one import of {count} in one request, {SYNCS_PER_USER} syncs of {MESSAGES_PER_SYNC} \
         messages by each of {USERS} users, and one download of the import; server memory before \
         that, and its peak"
    );
    let measure = move |peer: SystemUnderTest<'_>, _| memory::measure(run, peer, &import);
    Ok(Some(section(run, MEMORY.to_owned(), "messages", title, measure)))
}

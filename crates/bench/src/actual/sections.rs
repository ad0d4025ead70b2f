//! The tables.

use std::rc::Rc;
use std::time::Duration;

use super::import::{self, Import};
use super::memory::{self, MESSAGES_PER_SYNC, SYNCS_PER_USER, USERS};
use super::{Part, Run};
use crate::changes::{MESSAGES_PER_TRANSACTION, Pace};
use crate::measure::Sample;
use crate::service::load::{Load, Operation};
use crate::service::peers::{Crowd, Peer};
use crate::suite::{Case, Section};

/// An app that imports 1,000 transactions takes some 8 s for it.
pub(super) const IMPORT: Pace =
    Pace { at_once: MESSAGES_PER_TRANSACTION, before_ms: 8, step_ms: 8 };
/// A click a second, after an import.
pub(super) const SMALL: Pace = Pace { step_ms: 1_000, ..IMPORT };
/// Of a budget in which small syncs are made.
pub(super) const SMALL_BUDGET: usize = 1_000;
/// Of one that was kept for long: the trie grows with the minutes in which something was done.
const OLD_BUDGET: usize = 40_000;
const TWO_YEARS_MS: u64 = 2 * 365 * 86_400_000;
const OLD: Pace =
    Pace { before_ms: TWO_YEARS_MS * MESSAGES_PER_TRANSACTION / OLD_BUDGET as u64, ..SMALL };
/// Messages of a small sync: a transaction, and ten.
const SMALL_MESSAGES: [usize; 2] = [10, 100];
/// The table that is about it.
pub(super) const MEMORY: &str = "memory";
/// Larger ones are in the tables of imports.
const DOWNLOAD_MESSAGES_MAX: usize = 40_000;

/// In a closed loop.
pub(super) fn load(operation: Operation, messages: usize, seeded: usize, pace: Pace) -> Load {
    Load {
        operation,
        messages,
        limit: seeded,
        rate: None,
        connections: None,
        seeded: seeded as u64,
        pace,
    }
}

/// Those that the plan wants.
pub(super) fn of<'a>(run: &'a Run<'_>) -> anyhow::Result<Vec<Section<'a>>> {
    let plan = run.plan;
    let mut sections = Vec::new();
    for &messages in plan.messages.iter().filter(|_| plan.wants(Part::Bulk)) {
        let title = format!("{messages} messages in one request, into a budget that has none");
        sections.push(imports(run, format!("bulk-{messages}"), title, (messages, messages))?);
    }
    let page = plan.page;
    let paged = plan.messages.iter().filter(|messages| **messages > page);
    for &messages in paged.filter(|_| plan.wants(Part::Pages)) {
        let title = format!("{messages} messages in requests of {page}, one after the other");
        sections.push(imports(run, format!("pages-{messages}"), title, (messages, page))?);
    }
    if plan.wants(Part::Small) {
        for messages in SMALL_MESSAGES {
            sections.extend(plan.users.iter().map(|&users| small(run, messages, users)));
        }
    }
    if plan.wants(Part::Empty) {
        sections.extend(empty(run));
    }
    let sizes = plan.messages.iter().copied().filter(|&messages| messages <= DOWNLOAD_MESSAGES_MAX);
    if plan.wants(Part::Download) {
        sections.extend(sizes.map(|messages| download(run, messages)));
    }
    if plan.wants(Part::Memory) {
        sections.extend(memory(run)?);
    }
    Ok(sections)
}

/// The same by everybody.
fn section<'a>(
    run: &'a Run<'_>,
    name: String,
    unit: &'static str,
    title: String,
    measure: impl Fn(Peer<'_>, Duration) -> anyhow::Result<Sample> + Clone + 'a,
) -> Section<'a> {
    let cases = run.peers().into_iter().map(|(name, peer)| {
        let measure = measure.clone();
        Case::new(name, move |duration| measure(peer, duration))
    });
    Section { name, unit, title, cases: cases.collect() }
}

fn imports<'a>(
    run: &'a Run<'_>,
    name: String,
    title: String,
    (messages, page): (usize, usize),
) -> anyhow::Result<Section<'a>> {
    let import = Rc::new(Import::new(messages, page)?);
    let measure = move |peer: Peer<'_>, duration| import::measure(run, peer, &import, duration);
    Ok(section(run, name, "messages", title, measure))
}

/// What a closed loop of users with a device each does.
fn loops<'a>(
    run: &'a Run<'_>,
    (name, unit, title): (String, &'static str, String),
    users: usize,
    load: Load,
) -> Section<'a> {
    let crowd = Crowd { users, devices: 1 };
    section(run, name, unit, title, move |peer, duration| {
        run.bed.measure(peer, crowd, load, duration)
    })
}

fn small<'a>(run: &'a Run<'_>, messages: usize, users: usize) -> Section<'a> {
    let who = if users == 1 { "one user".to_owned() } else { format!("{users} users") };
    let title = format!("syncs of {messages} new messages by {who}, each waiting for the answer");
    let name = format!("small-{messages}-{users}");
    let load = load(Operation::Sync, messages, SMALL_BUDGET, SMALL);
    loops(run, (name, "syncs", title), users, load)
}

fn empty<'a>(run: &'a Run<'_>) -> [Section<'a>; 2] {
    let section = |name: &str, what: &str, messages, pace| {
        let title = format!("syncs without anything new, of {what}, by one user");
        let load = load(Operation::Sync, 0, messages, pace);
        loops(run, (name.to_owned(), "syncs", title), 1, load)
    };
    let old = format!("{OLD_BUDGET} messages spread over two years");
    [
        section("empty-small", &format!("{SMALL_BUDGET} messages of one day"), SMALL_BUDGET, SMALL),
        section("empty-years", &old, OLD_BUDGET, OLD),
    ]
}

fn download<'a>(run: &'a Run<'_>, messages: usize) -> Section<'a> {
    let title = format!("syncs of a device that has none of {messages} messages");
    let load = load(Operation::Whole, 0, messages, IMPORT);
    loops(run, (format!("download-{messages}"), "downloads", title), 1, load)
}

/// Of the largest import.
fn memory<'a>(run: &'a Run<'_>) -> anyhow::Result<Option<Section<'a>>> {
    let Some(&messages) = run.plan.messages.iter().max() else { return Ok(None) };
    let import = Rc::new(Import::new(messages, messages)?);
    let title = format!(
        "once each, an import of {messages} messages in one request, {SYNCS_PER_USER} syncs of \
         {MESSAGES_PER_SYNC} messages by each of {USERS} users, a download of the import; the \
         server's memory before and at most"
    );
    let measure = move |peer: Peer<'_>, _| memory::measure(run, peer, &import);
    Ok(Some(section(run, MEMORY.to_owned(), "messages", title, measure)))
}

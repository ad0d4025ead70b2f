//! `warren bench sync`: messages a second that one device stores in pages.
//!
//! - **bare**: one thread, SQLite called directly, one held statement, one transaction per page,
//!   into an equal encrypted table with the same index, `synchronous=FULL`.
//! - **protobuf**, **json**: the same messages pushed over HTTP to `warren serve`, the shipped
//!   binary on loopback; the next page goes when the last one is acknowledged, that is, on the
//!   disk.
//!
//! What the server does beyond bare: HTTP, decoding, checking, hashing, the queue, the fingerprint.
//! Each candidate gets fresh files in each round, and the order alternates.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bytes::Bytes;
use crdt::{Message, Node, Timestamp};
use engine::{Encryption, Key, Profile};
use indicatif::ProgressBar;
use protocol::{JSON, PushRequest, PushResponse};
use replica::Transport;
use rusqlite::Connection;
use serde::Serialize;

use crate::figures;
use crate::machine::Machine;
use crate::measure::{Spread, time};
use crate::served::Served;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Messages of one round.
    pub messages: usize,
    /// Messages of one page.
    pub page: usize,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// Rounds of each candidate.
    pub rounds: usize,
    /// Where the files go.
    pub folder: PathBuf,
    /// The shipped binary.
    pub program: PathBuf,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `sync`.
    pub benchmark: &'static str,
    /// On what.
    pub machine: Machine,
    /// Messages of one round.
    pub messages: usize,
    /// Messages of one page.
    pub page: usize,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// As read back from the bare loop's connection; the server acknowledges with the same.
    pub settings: Settings,
    /// One for each way.
    pub candidates: Vec<Candidate>,
}

/// What decides the cost of a commit.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// `chacha20`
    pub cipher: String,
    /// `wal`
    pub journal_mode: String,
    /// 2 is FULL: an fsync for each commit.
    pub synchronous: i64,
    /// Bytes.
    pub page_size: i64,
}

/// One way of storing the messages.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// `bare`, `protobuf` or `json`.
    pub name: &'static str,
    /// Seconds for all messages.
    pub seconds: Spread,
    /// Messages a second.
    pub rate: Spread,
    /// Its rate divided by that of the bare loop in the same round.
    pub of_bare: Spread,
}

const NAMES: [&str; 3] = ["bare", "protobuf", "json"];

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    anyhow::ensure!(plan.messages > 0 && plan.page > 0 && plan.rounds > 0, "nothing to measure");
    let folder = tempfile::tempdir_in(&plan.folder).context("the folder to measure in")?;
    let messages = messages(plan)?;
    let served = Served::start(&plan.program, &folder.path().join("served"))?;
    bar.set_length((plan.rounds * NAMES.len()) as u64);
    bar.set_message("measuring");
    let mut seconds: [Vec<f64>; 3] = Default::default();
    let mut settings = None;
    for round in 0..plan.rounds {
        for turn in 0..NAMES.len() {
            let candidate = (round + turn) % NAMES.len();
            let took = match candidate {
                0 => {
                    let path = folder.path().join(format!("bare{round}.sqlite"));
                    let (read_back, took) = bare(&path, &messages, plan.page)?;
                    settings = Some(read_back);
                    took
                }
                1 => pushed(&served, &format!("p{round}"), &messages, plan.page, push_protobuf)?,
                _ => pushed(&served, &format!("j{round}"), &messages, plan.page, push_json)?,
            };
            seconds[candidate].push(took);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(report(plan, settings.context("no round ran")?, seconds))
}

/// Messages as one device makes them: a millisecond apart, in order, contents that do not compress.
fn messages(plan: &Plan) -> anyhow::Result<Vec<Message>> {
    const FIRST_MS: u64 = 1_750_000_000_000;
    let mut content = vec![0; plan.content_bytes];
    (0..plan.messages)
        .map(|index| {
            getrandom::fill(&mut content).context("random numbers")?;
            let timestamp = Timestamp::new(FIRST_MS + index as u64, 0, Node(1));
            let timestamp = timestamp.context("a time within the years")?;
            Ok(Message { timestamp, content: Bytes::copy_from_slice(&content) })
        })
        .collect()
}

fn bare(path: &Path, messages: &[Message], page: usize) -> anyhow::Result<(Settings, f64)> {
    let encryption = Encryption::Key { key: Key::generate(), cipher: None };
    let opened = engine::open_connection(path, &encryption, Profile::SERVER, false, true)?;
    let (db, cipher) = opened;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch(
        "CREATE TABLE message (seq INTEGER PRIMARY KEY, timestamp BLOB NOT NULL UNIQUE, content BLOB NOT NULL)",
    )?;
    let ((), took) = time(|| insert(&db, messages, page))?;
    let text = |sql| db.query_row(sql, [], |row| row.get(0));
    let number = |sql| db.query_row(sql, [], |row| row.get(0));
    let settings = Settings {
        cipher: cipher.map_or("none", engine::Cipher::name).to_owned(),
        journal_mode: text("PRAGMA journal_mode")?,
        synchronous: number("PRAGMA synchronous")?,
        page_size: number("PRAGMA page_size")?,
    };
    Ok((settings, took.as_secs_f64()))
}

fn insert(db: &Connection, messages: &[Message], page: usize) -> anyhow::Result<()> {
    let sql = "INSERT INTO message (timestamp, content) VALUES (?1, ?2)";
    let mut statement = db.prepare(sql)?;
    for page in messages.chunks(page) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for message in page {
            statement.execute((message.timestamp.to_bytes(), &message.content[..]))?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(())
}

type Push = fn(&Served, &str, &PushRequest) -> anyhow::Result<PushResponse>;

fn pushed(
    served: &Served,
    login: &str,
    messages: &[Message],
    page: usize,
    push: Push,
) -> anyhow::Result<f64> {
    let token = served.account(login)?;
    let pages: Vec<PushRequest> = messages
        .chunks(page)
        .map(|page| PushRequest { messages: page.iter().cloned().map(Into::into).collect() })
        .collect();
    let (stored, took) = time(|| {
        let mut stored = 0;
        for page in &pages {
            stored += push(served, &token, page)?.stored;
        }
        Ok(stored)
    })?;
    anyhow::ensure!(stored == messages.len() as u64, "the server stored {stored} messages");
    Ok(took.as_secs_f64())
}

fn push_protobuf(served: &Served, token: &str, page: &PushRequest) -> anyhow::Result<PushResponse> {
    let mut http = replica::Http::clone(&served.http);
    Ok(http.push(token, page, 0)?)
}

fn push_json(served: &Served, token: &str, page: &PushRequest) -> anyhow::Result<PushResponse> {
    let body = serde_json::to_vec(page)?;
    let url = format!("{}/v1/sync/delta", served.address);
    let request = served.json.post(url).content_type(JSON);
    let request = request.header("authorization", format!("Bearer {token}"));
    let answer = request.send(&body)?.body_mut().read_to_vec()?;
    Ok(serde_json::from_slice(&answer)?)
}

fn report(plan: &Plan, settings: Settings, seconds: [Vec<f64>; 3]) -> Report {
    let bare = seconds[0].clone();
    let candidates = NAMES.into_iter().zip(seconds).map(|(name, seconds)| {
        #[expect(clippy::cast_precision_loss, reason = "counts of messages are far below 2^52")]
        let count = plan.messages as f64;
        let rate = seconds.iter().map(|seconds| count / seconds).collect();
        let of_bare = bare.iter().zip(&seconds).map(|(bare, seconds)| bare / seconds).collect();
        Candidate {
            name,
            rate: Spread::of(rate),
            of_bare: Spread::of(of_bare),
            seconds: Spread::of(seconds),
        }
    });
    Report {
        benchmark: "sync",
        machine: Machine::here(&plan.folder),
        messages: plan.messages,
        page: plan.page,
        content_bytes: plan.content_bytes,
        settings,
        candidates: candidates.collect(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let Settings { cipher, journal_mode, synchronous, page_size } = &self.settings;
        writeln!(
            f,
            "{} messages of {} bytes in pages of {}; {cipher}, {journal_mode}, synchronous {synchronous}, pages of {page_size}",
            self.messages, self.content_bytes, self.page
        )?;
        write!(f, "{:10} {:>22} {:>26} {:>22}", "", "seconds", "messages/s", "of bare")?;
        for candidate in &self.candidates {
            let name = candidate.name;
            let seconds = figures::spread(&candidate.seconds);
            let rate = figures::spread(&candidate.rate);
            let of_bare = figures::ratio(&candidate.of_bare);
            write!(f, "\n{name:10} {seconds:>22} {rate:>26} {of_bare:>22}")?;
        }
        Ok(())
    }
}

//! Measures PostgreSQL: the two published methods are compared with the cost of the rows alone, at
//! several distances from the database.
//!
//! Warren has its own tables in the same database, a server between it and the client, and its
//! fingerprint instead of the trie.
//!
//! The published tables hold one row per message, and per group a trie as one JSON document that
//! is read, changed and written back in the same transaction.

mod insert_methods;

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use crdt::Message;
use engine::clock::now;
use tokio_postgres::{Client, Config, NoTls};

use super::bench_run::{BulkBenchRun, NODE, UNIT, sample};
use super::delay_proxy::DelayProxy;
use super::http::{PageEncoding, PreparedRequests};
use crate::format::counted;
use crate::measure::Distribution;
use crate::message_generator::MessageGenerator;
use crate::postgres::BenchPostgres;
use crate::server_process::{PreparedDataDir, ServerProcess};
use crate::suite::{BenchCase, BenchSection, ResultTable};

/// The folder of Warren's accounts.
const SERVED: &str = "served-postgres";
/// The number and content size of the messages stored to learn how long a statement takes.
const TRIAL: usize = 400;
const TRIAL_CONTENT_BYTES: usize = 100;
/// The number of round trips measured before a table.
const PINGS: usize = 21;
const SCHEMA: &str = "\
    CREATE TABLE messages (group_id TEXT, timestamp TEXT, content BYTEA, \
                           PRIMARY KEY (group_id, timestamp));
    CREATE TABLE merkles (group_id TEXT PRIMARY KEY, merkle TEXT);";
const EMPTY: &str = "TRUNCATE messages, merkles; CHECKPOINT";

/// Published seconds, measured on other machines: one by one, in one statement, in pages.
struct PublishedTimes {
    count: usize,
    one: Option<f64>,
    text: Option<f64>,
    pages: Option<f64>,
}

const PUBLISHED: [PublishedTimes; 3] = [
    PublishedTimes { count: 4_000, one: Some(6.9), text: None, pages: None },
    PublishedTimes { count: 40_000, one: Some(59.0), text: Some(7.2), pages: None },
    PublishedTimes { count: 169_000, one: None, text: None, pages: Some(30.0) },
];
const PUBLISHED_NOTE: &str = "published figures, measured elsewhere: 4,000 messages one by one in \
    6.9 s; 40,000 messages one by one in 59 s, in one statement in 7.2 s, later in 5 s; 169,000 \
    messages in one statement crashed, in pages in about 30 s";

/// A method to insert messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InsertMethod {
    /// One statement over arrays, without a trie.
    Arrays,
    /// One statement per message.
    One,
    /// Statements with the values as text, each with this number of messages.
    Text(usize),
}

/// Measures all tables, and returns them with notes.
pub(super) fn run(
    run: &BulkBenchRun<'_>,
    folder: &Path,
) -> anyhow::Result<(Vec<ResultTable>, Vec<String>)> {
    let postgres = BenchPostgres::start(folder)?;
    postgres.runtime().block_on(async {
        postgres
            .connect()
            .await?
            .batch_execute(SCHEMA)
            .await
            .context("cannot create the published tables")
    })?;
    let accounts = FreshVaults::make(run, folder)?;
    let mut tables = Vec::new();
    let mut notes = vec![format!("PostgreSQL: {}", postgres.settings_text()?)];
    notes.push(PUBLISHED_NOTE.to_owned());
    for &latency_ms in &run.plan.latencies_ms {
        let way = DelayedServer::new(&postgres, latency_ms)?;
        let served = way.serve(run, folder)?;
        let ping_ms = way.ping_ms()?;
        let seconds = way.seconds_per_message()?;
        for &count in &run.plan.counts {
            let messages = run.messages(count)?;
            let pages: Vec<Vec<Message>> =
                messages.chunks(run.plan.page).map(<[_]>::to_vec).collect();
            let pages = PreparedRequests::new(PageEncoding::Protobuf, &pages)?;
            let arrays = "one statement over binary arrays, no trie";
            let mut cases = vec![way.case(arrays, InsertMethod::Arrays, &messages)];
            if let Some(skipped) = way.too_long(count, seconds, run.plan.case_max) {
                notes.push(skipped);
            } else {
                cases.push(way.published(InsertMethod::One, &messages, count));
            }
            cases.push(way.published(InsertMethod::Text(count), &messages, count));
            if run.plan.page < count {
                cases.push(way.published(InsertMethod::Text(run.plan.page), &messages, count));
            }
            cases.push(BenchCase::new("Warren, HTTP, protobuf", |_| {
                let push = pages.push(served.address, accounts.next()?, count);
                Ok(sample(count, postgres.runtime().block_on(push)?))
            }));
            let stored = counted(count, "message", "messages");
            let section = BenchSection {
                name: format!("postgres-{count}-{latency_ms}ms"),
                unit: UNIT,
                title: format!(
                    "{stored} in PostgreSQL, round trip {latency_ms} ms ({ping_ms:.1} ms \
                     measured), synchronous_commit on"
                ),
                cases,
            };
            tables.push(run.measure(section)?);
        }
    }
    Ok((tables, notes))
}

/// Fresh vaults for the pushes: an account is used only once.
struct FreshVaults {
    prepared: PreparedDataDir,
    used: Cell<usize>,
}

impl FreshVaults {
    fn make(run: &BulkBenchRun<'_>, folder: &Path) -> anyhow::Result<Self> {
        let plan = run.plan;
        let count = plan.counts.len() * plan.latencies_ms.len() * plan.rounds;
        let prepared = PreparedDataDir::make(folder.join(SERVED), count, count)?;
        Ok(Self { prepared, used: Cell::new(0) })
    }

    fn next(&self) -> anyhow::Result<&str> {
        let index = self.used.replace(self.used.get() + 1);
        let token = self.prepared.tokens.get(index);
        token.map(String::as_str).context("no account left for this push")
    }
}

/// A server, and the delay on the way to it.
struct DelayedServer<'a> {
    postgres: &'a BenchPostgres,
    config: Config,
    latency_ms: u64,
    _proxy: Option<DelayProxy>,
}

impl<'a> DelayedServer<'a> {
    fn new(postgres: &'a BenchPostgres, latency_ms: u64) -> anyhow::Result<Self> {
        let mut config = postgres.config().clone();
        let mut proxy = None;
        if latency_ms > 0 {
            let port = *config.get_ports().first().context("a port")?;
            let to = SocketAddr::from(([127, 0, 0, 1], port));
            let started = DelayProxy::start(to, Duration::from_millis(latency_ms))?;
            config = with_port(&config, started.address.port());
            proxy = Some(started);
        }
        Ok(Self { postgres, config, latency_ms, _proxy: proxy })
    }

    async fn connect(&self) -> anyhow::Result<Client> {
        let (client, connection) = self.config.connect(NoTls).await.context("PostgreSQL")?;
        // The task ends with the client, whose calls report connection errors.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Starts Warren at the same distance, with its vaults in its own tables.
    fn serve(&self, run: &BulkBenchRun<'_>, folder: &Path) -> anyhow::Result<ServerProcess> {
        let port = self.config.get_ports().first().context("a port")?;
        let user = self.config.get_user().context("a user")?;
        let password = self.config.get_password().context("a password")?;
        let password = std::str::from_utf8(password)?;
        let url = format!("postgres://{user}:{password}@127.0.0.1:{port}/postgres");
        ServerProcess::start(&run.plan.program, &folder.join(SERVED), &["--postgres", &url])
    }

    /// Returns the median duration of an empty statement.
    fn ping_ms(&self) -> anyhow::Result<f64> {
        self.postgres.runtime().block_on(async {
            let client = self.connect().await?;
            let mut waits = Vec::with_capacity(PINGS);
            for _ in 0..PINGS {
                let start = now();
                client.batch_execute("").await?;
                waits.push(start.elapsed().as_secs_f64() * 1_000.0);
            }
            Ok(Distribution::from_samples(waits).median)
        })
    }

    /// Returns the time of a statement per message, without the work that is done only once.
    fn seconds_per_message(&self) -> anyhow::Result<f64> {
        let messages = MessageGenerator::new(TRIAL_CONTENT_BYTES, 0).next(TRIAL, NODE)?;
        let once = self.store(InsertMethod::One, &messages[..1])?;
        let all = self.store(InsertMethod::One, &messages)?;
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let count = (TRIAL - 1) as f64;
        Ok(all.saturating_sub(once).as_secs_f64() / count)
    }

    /// Returns a note in place of figures if inserting one by one would take longer than allowed.
    fn too_long(&self, count: usize, seconds: f64, allowed: Duration) -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let seconds = seconds * count as f64;
        (seconds > allowed.as_secs_f64()).then(|| {
            format!(
                "skipped: {} one by one at {} ms would take about {seconds:.0} s, more than the {} \
                 s of --case-time-limit",
                counted(count, "message", "messages"),
                self.latency_ms,
                allowed.as_secs()
            )
        })
    }

    fn case<'s>(
        &'s self,
        name: impl Into<String>,
        way: InsertMethod,
        messages: &'s [Message],
    ) -> BenchCase<'s> {
        BenchCase::new(name, move |_| Ok(sample(messages.len(), self.store(way, messages)?)))
    }

    /// Returns a case with the published figure, which was measured at its own distance.
    fn published<'s>(
        &'s self,
        way: InsertMethod,
        messages: &'s [Message],
        count: usize,
    ) -> BenchCase<'s> {
        let name = match way {
            InsertMethod::Arrays => "arrays".to_owned(),
            InsertMethod::One => "a prepared statement per message".to_owned(),
            InsertMethod::Text(page) if page == count => "one statement as text".to_owned(),
            InsertMethod::Text(page) => format!("statements as text of {page} messages each"),
        };
        let case = self.case(name, way, messages);
        let published = PUBLISHED.iter().find(|published| published.count == count);
        let seconds = published.and_then(|published| match way {
            InsertMethod::Arrays => None,
            InsertMethod::One => published.one,
            InsertMethod::Text(page) if page == count => published.text,
            InsertMethod::Text(_) => published.pages,
        });
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        match seconds {
            Some(seconds) if self.latency_ms == 0 => case.published(count as f64 / seconds),
            _ => case,
        }
    }

    /// Stores the messages in empty tables; the time to connect does not count.
    fn store(&self, way: InsertMethod, messages: &[Message]) -> anyhow::Result<Duration> {
        self.postgres.runtime().block_on(async {
            self.postgres.connect().await?.batch_execute(EMPTY).await?;
            let mut client = self.connect().await?;
            let start = now();
            let stored = match way {
                InsertMethod::Arrays => insert_methods::arrays(&client, messages).await?,
                InsertMethod::One => insert_methods::one(&mut client, messages).await?,
                InsertMethod::Text(page) => {
                    let mut stored = 0;
                    for page in messages.chunks(page) {
                        stored += insert_methods::text(&client, page).await?;
                    }
                    stored
                }
            };
            let elapsed = start.elapsed();
            ensure!(stored == messages.len(), "stored {stored} of {} messages", messages.len());
            Ok(elapsed)
        })
    }
}

/// Returns the same configuration with another port of this machine.
fn with_port(config: &Config, port: u16) -> Config {
    let mut other = Config::new();
    other.host("127.0.0.1").port(port);
    if let Some(user) = config.get_user() {
        other.user(user);
    }
    if let Some(password) = config.get_password() {
        other.password(password);
    }
    if let Some(name) = config.get_dbname() {
        other.dbname(name);
    }
    other
}

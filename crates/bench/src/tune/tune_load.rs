//! Defines loads for a file: operations in SQL, and the cycles in which they are repeated.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use utoipa::ToSchema;

use super::settings::PragmaSettings;
use crate::sqlite_bench::{
    BodyLayout, CipherAndKey, LabPlan, LabStatement, LabStep, MailboxTable, SampleValue,
};

/// The kind of operations that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuneWorkload {
    /// A workload of 95 % reads.
    Read,
    /// A workload of 10 % reads.
    Write,
    /// A workload of 60 % reads.
    Mixed,
    /// The operations of a mailbox, as in the lab.
    Mail,
    /// The changes of a vault, pushed and pulled in pages of 100.
    Sync,
}

/// The operations and cycles of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct TuneLoad {
    /// The number of rows; `new` begins after it.
    pub(crate) rows: i64,
    pub(crate) body_bytes: usize,
    pub(crate) samples: BTreeMap<String, Vec<SampleValue>>,
    pub(crate) operations: BTreeMap<String, Vec<LabStatement>>,
    pub(crate) clean: Vec<String>,
    /// The whole mix first, then its parts.
    pub(crate) phases: Vec<TunePhase>,
    /// A description of the operations on each table, for the report.
    pub(crate) workload_tables: Vec<String>,
    /// Operations that are impossible, with the reasons.
    pub(crate) notes: Vec<String>,
}

/// A phase of a load that is measured separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunePhase {
    /// The name: `mix`, `reads` or `writes`.
    pub(crate) name: &'static str,
    pub(crate) cycle: Vec<String>,
    pub(crate) transaction: usize,
}

impl TunePhase {
    pub(crate) fn new(name: &'static str, cycle: Vec<String>, transaction: usize) -> Self {
        Self { name, cycle, transaction }
    }
}

pub(crate) fn statement(sql: impl Into<String>, bind: &[&str]) -> LabStatement {
    let bind = bind.iter().map(|name| (*name).to_owned()).collect();
    LabStatement { sql: sql.into(), bind }
}

impl TuneLoad {
    /// Returns a plan that runs every phase for `seconds` on one connection.
    pub(crate) fn plan(
        &self,
        database: &Path,
        settings: &PragmaSettings,
        encryption: &CipherAndKey,
        seconds: f64,
    ) -> LabPlan {
        let steps = self.phases.iter().map(|phase| LabStep {
            name: phase.name.to_owned(),
            cycle: phase.cycle.clone(),
            transaction: phase.transaction,
            warmup_seconds: seconds / 2.0,
            seconds,
        });
        LabPlan {
            database: database.to_owned(),
            cipher: encryption.as_ref().map(|(cipher, _)| cipher.clone()),
            key: encryption.as_ref().map(|(_, key)| key.clone()),
            settings: settings.for_connection(),
            rows: self.rows,
            body_bytes: self.body_bytes,
            seed: 7,
            samples: self.samples.clone(),
            operations: self.operations.clone(),
            steps: steps.collect(),
            clean: self.clean.clone(),
        }
    }
}

/// Creates a mailbox of messages with their bodies, 35 MB, and returns its load.
pub(crate) fn mail(path: &Path) -> anyhow::Result<TuneLoad> {
    let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 10_000, body_bytes: 3_500 };
    mailbox.make(path, &[], &None)?;
    let LabPlan { rows, body_bytes, samples, operations, clean, .. } =
        mailbox.plan(path, &[], &None, Vec::new());
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mix =
        ["list", "read", "read", "update", "insert", "read", "list", "update", "read", "delete"];
    Ok(TuneLoad {
        rows,
        body_bytes,
        samples,
        operations,
        clean,
        phases: vec![
            TunePhase::new("mix", names(&mix), 1),
            TunePhase::new("reads", names(&["list", "read", "read"]), 1),
            TunePhase::new("writes", names(&["insert", "update", "update", "delete"]), 1),
        ],
        workload_tables: vec![
            "10,000 messages with bodies of 3,500 bytes: lists of 50, reads of bodies, inserts, \
             updates of flags, deletes"
                .to_owned(),
        ],
        notes: Vec::new(),
    })
}

/// Messages of a page.
const PAGE: usize = 100;

/// Creates a vault's messages like those of `warren serve`, and returns their load.
pub(crate) fn sync(path: &Path) -> anyhow::Result<TuneLoad> {
    const ROWS: i64 = 50_000;
    let db = rusqlite::Connection::open(path)?;
    db.execute_batch(&format!(
        "CREATE TABLE message (seq INTEGER PRIMARY KEY, timestamp BLOB UNIQUE, content BLOB);
         INSERT INTO message WITH RECURSIVE n (i) AS
             (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             SELECT i, CAST(printf('%016d', i) AS BLOB), randomblob(300) FROM n;"
    ))?;
    let push = "INSERT INTO message VALUES (?1, CAST(printf('%016d', ?1) AS BLOB), ?2) \
                ON CONFLICT DO NOTHING";
    let pull = "SELECT seq, timestamp, content FROM message WHERE seq > ? ORDER BY seq LIMIT 100";
    let operations = [
        ("push", vec![statement(push, &["new", "body"])]),
        ("pull", vec![statement(pull, &["row"])]),
    ];
    let pushes = vec!["push".to_owned(); PAGE];
    let mut mix = pushes.clone();
    mix.push("pull".to_owned());
    Ok(TuneLoad {
        rows: ROWS,
        body_bytes: 300,
        operations: operations.into_iter().map(|(name, of)| (name.to_owned(), of)).collect(),
        clean: vec![format!("DELETE FROM message WHERE seq > {ROWS}")],
        phases: vec![
            TunePhase::new("mix", mix, PAGE + 1),
            TunePhase::new("reads", vec!["pull".to_owned()], 1),
            TunePhase::new("writes", pushes, PAGE),
        ],
        workload_tables: vec![
            "50,000 changes of 300 bytes: pages of 100, each pushed in one transaction and pulled"
                .to_owned(),
        ],
        ..TuneLoad::default()
    })
}

/// Creates a plain table with an index, whose load is derived like that of any file.
pub(crate) fn plain(path: &Path) -> anyhow::Result<()> {
    let db = rusqlite::Connection::open(path)?;
    db.execute_batch(
        "CREATE TABLE entry (id INTEGER PRIMARY KEY, created INTEGER NOT NULL, name TEXT NOT NULL, \
         note TEXT NOT NULL);
         INSERT INTO entry WITH RECURSIVE n (i) AS
             (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             SELECT i, i * 977 % 100000, 'entry ' || i, hex(randomblob(100)) FROM n;
         CREATE INDEX entry_created ON entry (created);
         ANALYZE",
    )?;
    Ok(())
}

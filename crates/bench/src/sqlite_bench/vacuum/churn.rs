//! Measures waves of deletes and inserts of messages of all sizes: the cost of `auto_vacuum`
//! during the waves, and the file that it leaves.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use engine::Profile;
use indicatif::ProgressBar;
use rusqlite::Connection;

use crate::format::whole;
use crate::measure::RoundSample;
use crate::sqlite_bench::configuration::{EffectiveConfiguration, PragmaConfiguration};
use crate::sqlite_bench::execute_plan::{PortableRng, execute_plan, set};
use crate::sqlite_bench::message_fixture::sample;
use crate::sqlite_bench::plan::{LabPlan, LabStatement, LabStep, SampleValue};
use crate::suite::{BenchCase, BenchSection};

/// Bytes of bodies: from a note to a message with a picture, 11 KB on average.
const SIZES: [i64; 8] = [200, 500, 1_000, 2_000, 3_500, 8_000, 16_000, 60_000];
/// The number of messages that a wave deletes and then inserts.
const WAVE: usize = 100;
/// Operations of a transaction.
const TRANSACTION: usize = 10;
/// The pages that `auto_vacuum = INCREMENTAL` returns at the end of each wave: a tenth of the
/// pages that a wave deletes.
const PAGES_GIVEN_BACK: u32 = 30;
const INSERT: &str = "INSERT INTO message VALUES (?, ?, randomblob(?))";

/// Returns the production set with each `auto_vacuum`, NONE first.
pub(super) fn configurations() -> anyhow::Result<Vec<PragmaConfiguration>> {
    let production = Profile::by_name("production").context("there is no profile `production`")?;
    let production = PragmaConfiguration::from_profile(production);
    let one = |value: &str, description: &str| {
        production.with(&format!("auto_vacuum {value}"), description, "auto_vacuum", value)
    };
    Ok(vec![
        one("NONE", "free pages stay in the file"),
        one("INCREMENTAL", "30 free pages are returned after each wave"),
        one("FULL", "each commit returns all free pages"),
    ])
}

/// Returns the disk space of three files with the additions of the waves.
pub(super) fn disk_bytes(rows: i64) -> u64 {
    const MESSAGE_BYTES: u64 = 16_384;
    const WAL_BYTES: u64 = 64 << 20;
    rows.unsigned_abs().saturating_mul(MESSAGE_BYTES * 3).saturating_add(WAL_BYTES)
}

pub(super) fn section<'a>(
    folder: &'a Path,
    configurations: &'a [PragmaConfiguration],
    rows: i64,
    bar: &'a ProgressBar,
) -> BenchSection<'a> {
    let cases = configurations.iter().map(|configuration| {
        BenchCase::new(configuration.name.as_str(), move |duration| {
            bar.set_message(format!("creating a file: {}", configuration.name));
            measure(folder, configuration, rows, duration)
        })
    });
    BenchSection {
        name: "auto-vacuum".to_owned(),
        unit: "operations",
        title: format!(
            "waves of {WAVE} deletes and {WAVE} inserts in a table of {} messages of 200 to 60,000 \
             bytes, {TRANSACTION} per transaction",
            whole(rows)
        ),
        cases: cases.collect(),
    }
}

fn measure(
    folder: &Path,
    configuration: &PragmaConfiguration,
    rows: i64,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let scratch = tempfile::tempdir_in(folder)?;
    let path = scratch.path().join("churn.sqlite");
    make(&path, &configuration.settings, rows)?;
    let configured = EffectiveConfiguration::read_back(configuration, &None, scratch.path())?;
    let answer = execute_plan(&plan(&path, configuration, rows, duration))?;
    configured.check(&answer.settings)?;
    let mut sample = sample(answer.steps.first().context("one step")?);
    sample.metrics.extend(state(&path)?);
    Ok(sample)
}

fn make(path: &Path, settings: &[(String, String)], rows: i64) -> anyhow::Result<()> {
    let db = Connection::open(path)?;
    set(&db, settings)?;
    db.execute_batch(
        "PRAGMA synchronous = OFF; CREATE TABLE message (id INTEGER PRIMARY KEY, \
         date INTEGER NOT NULL, body BLOB NOT NULL); CREATE INDEX message_date ON message (date)",
    )?;
    let transaction = db.unchecked_transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        let mut random = PortableRng::new(7);
        for id in 1..=rows {
            insert.execute((id, id, SIZES[random.next() as usize % SIZES.len()]))?;
        }
    }
    transaction.commit()?;
    db.close().map_err(|(_, error)| error)?;
    std::fs::File::open(path)?.sync_all()?;
    Ok(())
}

fn plan(
    path: &Path,
    configuration: &PragmaConfiguration,
    rows: i64,
    duration: Duration,
) -> LabPlan {
    let statement = |sql: &str, bind: &[&str]| LabStatement {
        sql: sql.to_owned(),
        bind: bind.iter().map(|name| (*name).to_owned()).collect(),
    };
    let insert = statement(INSERT, &["new", "row", "size"]);
    let delete = "DELETE FROM message WHERE id = \
                  (SELECT id FROM message WHERE id >= ? ORDER BY id LIMIT 1)";
    let mut last = vec![insert.clone()];
    let is_incremental =
        |(name, value): &(String, String)| name == "auto_vacuum" && value == "INCREMENTAL";
    if configuration.settings.iter().any(is_incremental) {
        last.push(statement(&format!("PRAGMA incremental_vacuum({PAGES_GIVEN_BACK})"), &[]));
    }
    let operations =
        [("delete", vec![statement(delete, &["row"])]), ("insert", vec![insert]), ("last", last)];
    let wave = ["delete"; WAVE].into_iter().chain(["insert"; WAVE - 1]).chain(["last"]);
    let seconds = duration.as_secs_f64();
    LabPlan {
        database: path.to_owned(),
        cipher: None,
        key: None,
        settings: configuration.settings.clone(),
        rows,
        body_bytes: 0,
        seed: 7,
        samples: [("size".to_owned(), SIZES.map(SampleValue::Integer).to_vec())].into(),
        operations: operations.map(|(name, of)| (name.to_owned(), of)).into(),
        steps: vec![LabStep {
            name: "churn".to_owned(),
            cycle: wave.map(str::to_owned).collect(),
            transaction: TRANSACTION,
            warmup_seconds: seconds / 4.0,
            seconds,
        }],
        clean: vec![],
    }
}

/// Returns metrics of the file after the waves: its size, its share of free pages, and how often,
/// in the order of the rows, a page is located before the page that is read before it: never in a
/// new file, half of the time by chance.
fn state(path: &Path) -> anyhow::Result<[(&'static str, f64); 3]> {
    let db = Connection::open(path)?;
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, f64>(0)).context("the file");
    let free = number(
        "SELECT freelist_count * 100.0 / page_count FROM pragma_freelist_count, pragma_page_count",
    )?;
    let backwards = number(
        "SELECT avg(pageno < before) * 100 FROM (SELECT pageno, lag(pageno) OVER \
         (ORDER BY path) AS before FROM dbstat WHERE name = 'message' AND pagetype = 'leaf')",
    )?;
    let bytes = path.metadata()?.len();
    Ok([
        ("file, MB", megabytes(bytes)),
        ("free pages, %", free),
        ("pages out of order, %", backwards),
    ])
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::longer_each_time;

    #[test]
    fn auto_vacuum_leaves_no_free_pages_and_others_do() {
        let folder = tempfile::tempdir().unwrap();
        let all = configurations().unwrap();
        let left = |index: usize, duration| {
            let sample = measure(folder.path(), &all[index], 300, duration).unwrap();
            let metric = |name| sample.metrics.iter().find(|(of, _)| *of == name).unwrap().1;
            assert!(sample.transactions > 0 && metric("file, MB") > 1.0, "{sample:?}");
            (metric("free pages, %"), metric("pages out of order, %"))
        };
        let first = Duration::from_millis(40);
        assert!(longer_each_time(first).any(|duration| {
            let (free, out_of_order) = left(2, duration);
            assert!(free.abs() < f64::EPSILON, "{free} %");
            out_of_order > 0.0
        }));
        // A run may end when a wave of inserts has just filled the space that the deletes had
        // left.
        for index in [0, 1] {
            assert!(longer_each_time(first).any(|duration| {
                let (free, out_of_order) = left(index, duration);
                free > 0.0 && out_of_order > 0.0
            }));
        }
    }

    #[test]
    fn a_fresh_file_is_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sqlite");
        make(&path, &configurations().unwrap()[0].settings, 100).unwrap();
        let [(_, size), (_, free), (_, jumps)] = state(&path).unwrap();
        assert!(
            size > 0.5 && free.abs() < f64::EPSILON && jumps.abs() < f64::EPSILON,
            "{size} {free} {jumps}"
        );
    }
}

//! Carries out a plan with the SQLite that is linked here, called from Rust: the driver with which
//! all others are compared.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, ensure};
use engine::clock::now;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::plan::{LabDriverInfo, LabPlan, LabResult, LabStep, SampleValue, StepTiming};
use crate::machine::compile_options;
use crate::measure::time;

/// Carries out the plan on one connection, which is opened for it and closed at its end.
pub(crate) fn execute_plan(plan: &LabPlan) -> anyhow::Result<LabResult> {
    let db = open(plan)?;
    let steps = PlanExecution::new(plan, &db)?.steps()?;
    plan.clean.iter().try_for_each(|sql| db.execute_batch(sql)).context("cannot clean up")?;
    let names = plan.settings.iter().map(|(name, _)| name);
    let settings = names.map(|name| anyhow::Ok((name.clone(), read_setting(&db, name)?)));
    let settings = settings.collect::<anyhow::Result<_>>()?;
    Ok(LabResult { about: about(&db)?, settings, steps })
}

/// Returns how long one operation takes on a connection that has prepared all statements and run
/// none.
pub(crate) fn time_once(plan: &LabPlan, operation: &str) -> anyhow::Result<Duration> {
    let db = open(plan)?;
    let mut run = PlanExecution::new(plan, &db)?;
    let (_, elapsed) = time(|| run.operation(operation))?;
    Ok(elapsed)
}

/// Opens the file with the plan's cipher, key and settings.
pub(crate) fn open(plan: &LabPlan) -> anyhow::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&plan.database, flags)
        .with_context(|| format!("cannot open {}", plan.database.display()))?;
    if let (Some(cipher), Some(key)) = (&plan.cipher, &plan.key) {
        unlock(&db, cipher, key)?;
    }
    set(&db, &plan.settings)?;
    Ok(db)
}

/// Sets the PRAGMAs in order.
pub(crate) fn set(db: &Connection, settings: &[(String, String)]) -> anyhow::Result<()> {
    settings.iter().try_for_each(|(name, value)| {
        db.execute_batch(&format!("PRAGMA {name} = {value}"))
            .with_context(|| format!("PRAGMA {name} = {value}"))
    })
}

/// Reads the value of a PRAGMA.
pub(crate) fn read_setting(db: &Connection, name: &str) -> anyhow::Result<SampleValue> {
    let value = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, Value>(0));
    Ok(match value.with_context(|| format!("PRAGMA {name}"))? {
        Value::Null => SampleValue::Null,
        Value::Integer(value) => SampleValue::Integer(value),
        Value::Real(value) => SampleValue::Real(value),
        Value::Text(value) => SampleValue::Text(value),
        Value::Blob(_) => anyhow::bail!("PRAGMA {name} is a BLOB"),
    })
}

/// Sets the connection's cipher and raw key.
pub(crate) fn unlock(db: &Connection, cipher: &str, key: &str) -> anyhow::Result<()> {
    choose(db, cipher)?;
    let bytes = (0..key.len()).step_by(2).map(|at| {
        let digits = key.get(at..at + 2).context("an odd number of digits")?;
        u8::from_str_radix(digits, 16).context("not a hexadecimal digit")
    });
    let bytes: Vec<u8> = bytes.collect::<anyhow::Result<_>>().context("the plan's key")?;
    let bytes = bytes.try_into().ok().context("the plan's key is not 32 bytes long")?;
    Ok(sqlite3mc_sys::set_key(db, &bytes)?)
}

/// Sets the connection's cipher, by its name in SQLite3 Multiple Ciphers, which has more ciphers
/// than the engine.
pub(crate) fn choose(db: &Connection, cipher: &str) -> anyhow::Result<()> {
    let chosen = db.query_row(&format!("PRAGMA cipher = '{cipher}'"), [], |row| row.get(0));
    let chosen: String = chosen.with_context(|| format!("cipher {cipher}"))?;
    ensure!(chosen == cipher, "SQLite uses cipher {chosen} instead of {cipher}");
    Ok(())
}

/// Returns the ciphers that this SQLite supports, of those in SQLite3 Multiple Ciphers
/// (<https://utelle.github.io/SQLite3MultipleCiphers/docs/ciphers/cipher_overview/>).
pub(crate) fn ciphers() -> anyhow::Result<Vec<&'static str>> {
    let db = Connection::open_in_memory()?;
    let all = ["chacha20", "aes256cbc", "aes128cbc", "aegis", "ascon128", "sqlcipher", "rc4"];
    Ok(all.into_iter().filter(|cipher| choose(&db, cipher).is_ok()).collect())
}

/// Returns the identification of this driver.
pub(crate) fn about(db: &Connection) -> anyhow::Result<LabDriverInfo> {
    Ok(LabDriverInfo {
        driver: "warren".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sqlite: rusqlite::version().to_owned(),
        runtime: "Rust".to_owned(),
        ciphers: ciphers()?.into_iter().map(str::to_owned).collect(),
        compile_options: compile_options(db)?,
    })
}

/// A random number generator that is the same in every language.
pub(crate) struct PortableRng(u32);

impl PortableRng {
    pub(crate) fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// Returns the next 24 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

/// Returns bytes that do not compress; they are the same each time.
pub(crate) fn body(bytes: usize) -> Vec<u8> {
    let mut random = PortableRng::new(1);
    (0..bytes).map(|_| random.next().to_le_bytes()[0]).collect()
}

/// The source of a bound value.
enum BindSource<'p> {
    New,
    Last,
    Row,
    Body,
    Sample(&'p [SampleValue]),
}

/// A statement that stays prepared: to look one up by its text costs a fifth of a small statement.
struct CachedStep<'p> {
    statement: Statement<'p>,
    bind: Vec<BindSource<'p>>,
}

/// A plan while it is carried out.
struct PlanExecution<'p> {
    plan: &'p LabPlan,
    begin: Statement<'p>,
    commit: Statement<'p>,
    operations: BTreeMap<&'p str, Vec<CachedStep<'p>>>,
    random: PortableRng,
    body: Vec<u8>,
    /// The largest value that `new` has returned.
    largest: i64,
    /// The values that `new` has returned and `last` has not taken yet.
    given: Vec<i64>,
}

/// The outcome of an operation or a transaction.
#[derive(PartialEq, Eq)]
enum StepOutcome {
    Done,
    /// The operation found no value for `last`, so the step ends.
    Empty,
}

impl<'p> PlanExecution<'p> {
    fn new(plan: &'p LabPlan, db: &'p Connection) -> anyhow::Result<Self> {
        let mut operations = BTreeMap::new();
        for (name, statements) in &plan.operations {
            let prepared = statements.iter().map(|statement| {
                let bind = statement.bind.iter().map(|name| {
                    Ok(match name.as_str() {
                        "new" => BindSource::New,
                        "last" => BindSource::Last,
                        "row" => BindSource::Row,
                        "body" => BindSource::Body,
                        name => BindSource::Sample(
                            plan.samples
                                .get(name)
                                .filter(|values| !values.is_empty())
                                .with_context(|| format!("unknown sample: {name}"))?,
                        ),
                    })
                });
                let bind = bind.collect::<anyhow::Result<_>>()?;
                let statement = db.prepare(&statement.sql).context(name.clone())?;
                Ok(CachedStep { statement, bind })
            });
            operations.insert(name.as_str(), prepared.collect::<anyhow::Result<_>>()?);
        }
        Ok(Self {
            plan,
            begin: db.prepare("BEGIN IMMEDIATE")?,
            commit: db.prepare("COMMIT")?,
            operations,
            random: PortableRng::new(plan.seed),
            body: body(plan.body_bytes),
            largest: plan.rows,
            given: Vec::new(),
        })
    }

    fn steps(&mut self) -> anyhow::Result<Vec<StepTiming>> {
        let plan = self.plan;
        let steps = plan
            .steps
            .iter()
            .map(|step| self.step(step).with_context(|| format!("step {}", step.name)));
        steps.collect()
    }

    fn step(&mut self, step: &'p LabStep) -> anyhow::Result<StepTiming> {
        ensure!(step.transaction > 0 && !step.cycle.is_empty(), "the step has no operations");
        let mut number = 0;
        let warmup = Duration::try_from_secs_f64(step.warmup_seconds)?;
        let start = now();
        let mut outcome = StepOutcome::Done;
        while outcome == StepOutcome::Done && start.elapsed() < warmup {
            outcome = self.transaction(step, &mut number)?;
        }
        let before = number;
        let mut slowest = Duration::ZERO;
        let duration = Duration::try_from_secs_f64(step.seconds)?;
        let (start, cpu) = (now(), cpu_time());
        let mut last = start;
        while outcome == StepOutcome::Done && last - start < duration {
            outcome = self.transaction(step, &mut number)?;
            let end = now();
            slowest = slowest.max(end - last);
            last = end;
        }
        Ok(StepTiming {
            name: step.name.clone(),
            operations: (number - before) as u64,
            seconds: (last - start).as_secs_f64(),
            cpu_seconds: Some(cpu_time().saturating_sub(cpu).as_secs_f64()),
            slowest_us: slowest.as_secs_f64() * 1e6,
        })
    }

    fn transaction(
        &mut self,
        step: &'p LabStep,
        number: &mut usize,
    ) -> anyhow::Result<StepOutcome> {
        let is_explicit = step.transaction > 1;
        if is_explicit {
            self.begin.execute([])?;
        }
        let mut outcome = StepOutcome::Done;
        for _ in 0..step.transaction {
            let name = step.cycle[*number % step.cycle.len()].as_str();
            outcome = self.operation(name)?;
            if outcome == StepOutcome::Empty {
                break;
            }
            *number += 1;
        }
        if is_explicit {
            self.commit.execute([])?;
        }
        Ok(outcome)
    }

    fn operation(&mut self, name: &str) -> anyhow::Result<StepOutcome> {
        let Self { operations, random, body, largest, given, plan, .. } = self;
        let statements =
            operations.get_mut(name).with_context(|| format!("unknown operation: {name}"))?;
        // All statements of one operation share the same new row and the same last one.
        let (mut new, mut last) = (None, None);
        for CachedStep { statement, bind } in statements {
            for (index, bind) in bind.iter().enumerate() {
                let row;
                let value: &dyn ToSql = match bind {
                    BindSource::New => new.get_or_insert_with(|| {
                        *largest += 1;
                        given.push(*largest);
                        *largest
                    }),
                    BindSource::Last => {
                        if last.is_none() {
                            last = given.pop();
                        }
                        if last.is_none() {
                            return Ok(StepOutcome::Empty);
                        }
                        &last
                    }
                    BindSource::Row => {
                        row = 1 + i64::from(random.next()) % plan.rows;
                        &row
                    }
                    BindSource::Body => body,
                    BindSource::Sample(values) => &values[random.next() as usize % values.len()],
                };
                statement.raw_bind_parameter(index + 1, value)?;
            }
            let columns = statement.column_count();
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    // Some texts in a file may not be UTF-8.
                    black_box(match row.get_ref(column)? {
                        ValueRef::Text(text) => {
                            Value::Text(String::from_utf8_lossy(text).into_owned())
                        }
                        other => other.try_into()?,
                    });
                }
            }
        }
        Ok(StepOutcome::Done)
    }
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

//! Measures SQLite: the bare loop, moving the bytes, Warren over HTTP, and Warren's storage in
//! this process.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use crdt::Message;
use engine::{DatabaseKey, FileEncryption};
use tokio::runtime::{Builder, Runtime};

use super::bare;
use super::bench_run::{BulkBenchRun, UNIT, sample};
use super::http::{PageEncoding, PreparedRequests, start_sink};
use super::store::StoreFixture;
use crate::format::counted;
use crate::report_setting::ReportSetting;
use crate::server_process::{PreparedDataDir, ServerProcess};
use crate::suite::{BenchCase, BenchSection, ResultTable};

/// The number of cases that push to Warren.
const PUSHING: usize = 2;

pub(super) fn run(
    run: &BulkBenchRun<'_>,
    folder: &Path,
) -> anyhow::Result<(Vec<ResultTable>, Vec<ReportSetting>)> {
    let plan = run.plan;
    // Each sequence of pages needs a fresh vault, so an account is used only once.
    let accounts = plan.counts.len() * plan.rounds * PUSHING;
    let data = folder.join("served");
    let prepared = PreparedDataDir::make(data.clone(), accounts, accounts)?;
    let served = ServerProcess::start(&plan.program, &data, &[])?;
    // One thread serves the client, the other the server that only reads.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("tokio")?;
    let next = Cell::new(0);
    let token = || {
        let index = next.replace(next.get() + 1);
        prepared.tokens.get(index).context("no account left for this push")
    };
    let sink = start_sink(&runtime)?;
    let fixture = BulkFixture { run, folder, runtime: &runtime, sink, files: Cell::new(0) };
    let stores = StoreFixture::start(&folder.join("stores"))?;
    let mut tables = Vec::new();
    for &count in &plan.counts {
        let messages = run.messages(count)?;
        let pages: Vec<Vec<Message>> = messages.chunks(plan.page).map(<[_]>::to_vec).collect();
        let protobuf = PreparedRequests::new(PageEncoding::Protobuf, &pages)?;
        let json = PreparedRequests::new(PageEncoding::Json, &pages)?;
        let push = |pages: &PreparedRequests| {
            let push = pages.push(served.address, token()?, count);
            Ok(sample(count, runtime.block_on(push)?))
        };
        let mut cases = vec![
            BenchCase::new("bare loop, then moving the bytes", |_| {
                Ok(sample(count, fixture.bare(&messages)? + fixture.move_bytes(&protobuf)?))
            }),
            BenchCase::new("bare loop", |_| Ok(sample(count, fixture.bare(&messages)?))),
            BenchCase::new("bare loop, not encrypted", |_| {
                let took =
                    bare::store(&fixture.file(), &FileEncryption::None, &messages, plan.page)?;
                Ok(sample(count, took))
            }),
            BenchCase::new("moving the bytes", |_| {
                Ok(sample(count, fixture.move_bytes(&protobuf)?))
            }),
            BenchCase::new(format!("Warren, HTTP, {}", PageEncoding::Protobuf.name()), |_| {
                push(&protobuf)
            }),
            BenchCase::new(format!("Warren, HTTP, {}", PageEncoding::Json.name()), |_| push(&json)),
        ];
        cases.push(stores.case(&runtime, &messages, plan.page));
        let section = BenchSection {
            name: format!("local-{count}"),
            unit: UNIT,
            title: format!(
                "{} in SQLite, one fsync per page of {}",
                counted(count, "message", "messages"),
                plan.page
            ),
            cases,
        };
        tables.push(run.measure(section)?);
    }
    Ok((tables, bare::settings(&folder.join("settings.sqlite"))?))
}

struct BulkFixture<'a> {
    run: &'a BulkBenchRun<'a>,
    folder: &'a Path,
    runtime: &'a Runtime,
    sink: SocketAddr,
    files: Cell<usize>,
}

impl BulkFixture<'_> {
    fn bare(&self, messages: &[Message]) -> anyhow::Result<Duration> {
        let encryption = FileEncryption::Key { key: DatabaseKey::generate(), cipher: None };
        bare::store(&self.file(), &encryption, messages, self.run.plan.page)
    }

    fn file(&self) -> PathBuf {
        let number = self.files.replace(self.files.get() + 1);
        self.folder.join(format!("bare{number}.sqlite"))
    }

    fn move_bytes(&self, pages: &PreparedRequests) -> anyhow::Result<Duration> {
        self.runtime.block_on(pages.move_bytes(self.sink))
    }
}

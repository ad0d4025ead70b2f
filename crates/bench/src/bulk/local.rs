//! On SQLite: the bare loop, moving the bytes, Warren over HTTP, and Warren's storage in this
//! process.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use crdt::Message;
use engine::{Encryption, Key};
use tokio::runtime::{Builder, Runtime};

use super::http::{Encoding, Pages, start_sink};
use super::store::Stores;
use super::{Run, UNIT, bare, sample};
use crate::served::{Prepared, Served};
use crate::suite::{Case, Section, Table};

/// Cases that push to Warren.
const PUSHING: usize = 2;

type Settings = Vec<(String, String)>;

pub(super) fn run(run: &Run<'_>, folder: &Path) -> anyhow::Result<(Vec<Table>, Settings)> {
    let plan = run.plan;
    // A fresh vault for each page sequence: an account is used once.
    let accounts = plan.counts.len() * plan.rounds * PUSHING;
    let data = folder.join("served");
    let prepared = Prepared::make(data.clone(), accounts, accounts)?;
    let served = Served::start(&plan.program, &data, &[])?;
    // One thread for the client, one for the server that only reads.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("tokio")?;
    let next = Cell::new(0);
    let token = || {
        let index = next.replace(next.get() + 1);
        prepared.tokens.get(index).context("an account for each push")
    };
    let sink = start_sink(&runtime)?;
    let bed = Bed { run, folder, runtime: &runtime, sink, files: Cell::new(0) };
    let stores = Stores::start(&folder.join("stores"))?;
    let mut tables = Vec::new();
    for &count in &plan.counts {
        let messages = run.messages(count)?;
        let pages: Vec<Vec<Message>> = messages.chunks(plan.page).map(<[_]>::to_vec).collect();
        let protobuf = Pages::new(Encoding::Protobuf, &pages)?;
        let json = Pages::new(Encoding::Json, &pages)?;
        let push = |pages: &Pages| {
            let push = pages.push(served.address, token()?, count);
            Ok(sample(count, runtime.block_on(push)?))
        };
        let mut cases = vec![
            Case::new("bare loop, then moving the bytes", |_| {
                Ok(sample(count, bed.bare(&messages)? + bed.move_bytes(&protobuf)?))
            }),
            Case::new("bare loop", |_| Ok(sample(count, bed.bare(&messages)?))),
            Case::new("bare loop, not encrypted", |_| {
                let took = bare::store(&bed.file(), &Encryption::None, &messages, plan.page)?;
                Ok(sample(count, took))
            }),
            Case::new("moving the bytes", |_| Ok(sample(count, bed.move_bytes(&protobuf)?))),
            Case::new(format!("Warren, HTTP, {}", Encoding::Protobuf.name()), |_| push(&protobuf)),
            Case::new(format!("Warren, HTTP, {}", Encoding::Json.name()), |_| push(&json)),
        ];
        cases.push(stores.case(&runtime, &messages, plan.page));
        let section = Section {
            name: format!("local-{count}"),
            unit: UNIT,
            title: format!("{count} messages on SQLite, an fsync per page of {}", plan.page),
            cases,
        };
        tables.push(run.measure(section)?);
    }
    Ok((tables, bare::settings(&folder.join("settings.sqlite"))?))
}

struct Bed<'a> {
    run: &'a Run<'a>,
    folder: &'a Path,
    runtime: &'a Runtime,
    sink: SocketAddr,
    files: Cell<usize>,
}

impl Bed<'_> {
    fn bare(&self, messages: &[Message]) -> anyhow::Result<Duration> {
        let encryption = Encryption::Key { key: Key::generate(), cipher: None };
        bare::store(&self.file(), &encryption, messages, self.run.plan.page)
    }

    fn file(&self) -> PathBuf {
        let number = self.files.replace(self.files.get() + 1);
        self.folder.join(format!("bare{number}.sqlite"))
    }

    fn move_bytes(&self, pages: &Pages) -> anyhow::Result<Duration> {
        self.runtime.block_on(pages.move_bytes(self.sink))
    }
}

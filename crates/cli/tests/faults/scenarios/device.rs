//! A scenario with the edits and syncs of two files of `sync.rs`, with the faults in the devices'
//! folder, in one of the two journal modes.

use std::path::Path;

use rusqlite::Connection;

use super::sync::{check_files, edit_and_sync, prepare_files};
use super::{FaultRun, FaultScenario, prepare_account, register};
use crate::fixture::FaultedServer;

pub(crate) struct DeviceScenario<const IS_WAL: bool> {
    token: String,
}

impl<const IS_WAL: bool> FaultScenario for DeviceScenario<IS_WAL> {
    type Left = ();

    const NAME: &'static str = if IS_WAL { "device, WAL" } else { "device, rollback journal" };
    const IS_DEVICE: bool = true;

    fn prepare(base: &Path) -> Self {
        let (server, token) = prepare_account(base);
        prepare_files(base, &server);
        if IS_WAL {
            for file in ["a.db", "b.db"] {
                let db = Connection::open(base.join(file)).unwrap();
                db.pragma_update(None, "journal_mode", "WAL").unwrap();
            }
        }
        assert!(server.stop().unwrap().success());
        Self { token }
    }

    fn run(&self, server: &FaultedServer, run: &mut FaultRun) {
        edit_and_sync(run, server);
    }

    fn is_back(&self, server: &FaultedServer, run: &mut FaultRun, (): &mut ()) -> bool {
        register(&mut run.ledger, server, &self.token, "", "probe").is_some()
    }

    fn check(&self, server: &FaultedServer, run: &mut FaultRun, (): &()) -> Vec<String> {
        check_files(run, server)
    }
}

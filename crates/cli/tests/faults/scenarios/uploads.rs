//! A scenario of uploads of a budget's file by Actual's protocol, and of maintenance, which
//! compacts the vault's file.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{FaultRun, FaultScenario};
use crate::fixture::{ADMIN, FaultedServer, PASSWORD, SendRecord, send};

pub(crate) struct UploadScenario {
    token: String,
    group: String,
}

/// The files that the budget may contain: the last acknowledged one, and later ones that were not
/// acknowledged.
#[derive(Default)]
pub(crate) struct LeftUploads {
    may_be: BTreeSet<u8>,
}

/// The default of `--actual-budget-login`.
const ACTUAL_LOGIN: &str = "actual";
const FILE_ID: &str = "2b0b5c0e-6d1f-4c4e-9c9e-1f2f3a4b5c6d";
/// The size of the budget's file; a chunk has 256 KiB. A replaced file leaves more than the 256
/// free pages from which on a vault is compacted.
const FILE_BYTES: usize = 1_500_000;

impl FaultScenario for UploadScenario {
    type Left = LeftUploads;

    const NAME: &'static str = "uploads, compaction";

    fn prepare(base: &Path) -> Self {
        std::fs::create_dir_all(base).unwrap();
        let server = FaultedServer::start(base, Vec::new()).map_err(|(_, said)| said).unwrap();
        let uploads = Self::sign_up(&server);
        assert!(server.stop().unwrap().success());
        uploads
    }

    fn run(&self, server: &FaultedServer, run: &mut FaultRun) -> LeftUploads {
        let mut left = LeftUploads { may_be: BTreeSet::from([0]) };
        for number in 1..=3 {
            self.try_upload(server, &mut run.ledger, &mut left, number);
        }
        run.ledger.call(server, ("POST", "/v1/admin/maintenance"), ADMIN, &json!({}));
        self.try_upload(server, &mut run.ledger, &mut left, 4);
        left
    }

    fn is_back(&self, server: &FaultedServer, run: &mut FaultRun, left: &mut LeftUploads) -> bool {
        self.try_upload(server, &mut run.ledger, left, 5) && self.download(server).is_ok()
    }

    fn check(&self, server: &FaultedServer, _: &mut FaultRun, left: &LeftUploads) -> Vec<String> {
        match self.download(server) {
            Ok(number) if left.may_be.contains(&number) => Vec::new(),
            Ok(number) => vec![format!("LOST: the file is {number}, not of {:?}", left.may_be)],
            Err(error) => vec![format!("LOST: {error}")],
        }
    }
}

impl UploadScenario {
    /// Creates the account that apps sign in to, and its budget.
    pub(crate) fn sign_up(server: &FaultedServer) -> Self {
        let bootstrap = format!("{}/account/bootstrap", server.gateway);
        let password = serde_json::to_vec(&json!({"password": PASSWORD})).unwrap();
        let headers = [("content-type", "application/json")];
        let answer = send("POST", &bootstrap, &headers, &password).unwrap().value();
        let token = answer["data"]["token"].as_str().unwrap().to_owned();
        let uploads = Self { token, group: String::new() };
        let first = uploads.upload(server, 0).unwrap();
        Self { group: first["groupId"].as_str().unwrap().to_owned(), ..uploads }
    }

    fn try_upload(
        &self,
        server: &FaultedServer,
        ledger: &mut SendRecord,
        left: &mut LeftUploads,
        number: u8,
    ) -> bool {
        let is_acknowledged = self.upload(server, number).is_some();
        if is_acknowledged {
            left.may_be.clear();
        } else {
            ledger.record_error("upload refused");
        }
        left.may_be.insert(number);
        is_acknowledged
    }

    /// Registers a device of the account, for messages; returns its token.
    pub(crate) fn register_device(base: &Path) -> String {
        let server = FaultedServer::start(base, Vec::new()).map_err(|(_, said)| said).unwrap();
        let mut ledger = SendRecord::default();
        let body = json!({"login": ACTUAL_LOGIN, "password": PASSWORD, "name": "device"});
        let answer = ledger.call(&server, ("POST", "/v1/devices"), "", &body).unwrap().value();
        assert!(server.stop().unwrap().success());
        answer["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn upload(&self, server: &FaultedServer, number: u8) -> Option<Value> {
        let mut headers = vec![
            ("x-actual-token", &*self.token),
            ("x-actual-file-id", FILE_ID),
            ("x-actual-name", "budget"),
            ("x-actual-format", "2"),
            ("content-type", "application/encrypted-file"),
        ];
        if !self.group.is_empty() {
            headers.push(("x-actual-group-id", &self.group));
        }
        let url = format!("{}/sync/upload-user-file", server.gateway);
        let answer = send("POST", &url, &headers, &vec![number; FILE_BYTES])?;
        (answer.status == 200).then(|| answer.value())
    }

    /// Downloads the budget's file and returns its number.
    pub(crate) fn download(&self, server: &FaultedServer) -> Result<u8, String> {
        let url = format!("{}/sync/download-user-file", server.gateway);
        let headers = [("x-actual-token", &*self.token), ("x-actual-file-id", FILE_ID)];
        let answer = send("GET", &url, &headers, &[]).ok_or("the download breaks off")?;
        let number = answer.body.first().copied().unwrap_or(u8::MAX);
        let is_whole = answer.status == 200
            && answer.body.len() == FILE_BYTES
            && answer.body.iter().all(|byte| *byte == number);
        if is_whole {
            Ok(number)
        } else {
            Err(format!("the download says {} with {} bytes", answer.status, answer.body.len()))
        }
    }
}

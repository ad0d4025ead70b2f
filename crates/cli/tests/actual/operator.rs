//! A fixture of a running Warren and its operator, who manages budgets at the same time.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::actual_server::ActualServer;
use crate::budget_client::{BudgetClient, BudgetLibrary};
use crate::output_schema;

const WARREN: &str = env!("CARGO_BIN_EXE_warren");
const PASSWORD: &str = "correct horse";

/// A running Warren, and a folder for its operator and for apps.
pub(crate) struct OperatorFixture {
    pub(crate) warren: ActualServer,
    folder: TempDir,
}

impl OperatorFixture {
    pub(crate) fn new() -> Self {
        let operator =
            Self { warren: ActualServer::warren(), folder: tempfile::tempdir().unwrap() };
        fs::write(operator.at("password.txt"), format!("{PASSWORD}\n")).unwrap();
        operator
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn client(&self, server: &ActualServer, name: &str) -> BudgetClient {
        BudgetClient::sign_in(BudgetLibrary::Api, server.address(), PASSWORD, &self.at(name))
    }

    /// Runs `warren actual-budget …` while the server runs.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(WARREN);
        command.arg("actual-budget").args(arguments).arg("--json").stdin(Stdio::null());
        command.arg("--data").arg(self.warren.data());
        let output = command.arg("--password-file").arg(self.at("password.txt")).output().unwrap();
        let command = [&["actual-budget"], arguments, &["--json"]].concat();
        output_schema::check(&command, &String::from_utf8_lossy(&output.stdout));
        output
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that fails; returns the error's code and message.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        // Status 77: not allowed (Format 4).
        assert!(matches!(output.status.code(), Some(1 | 77)), "{output:?}");
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |member: &str| error["error"][member].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

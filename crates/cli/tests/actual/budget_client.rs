//! A process that uses a budget: with `@actual-app/api` or with `actualpy`, by the same requests
//! (`tests/actual/client.js`, `client.py`), or as a person in the web app (`web.js`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::actual_server::{end_of_log, installed, packages};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/actual");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
/// The time limit of the longest request, on a busy machine.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(2);

/// The library that a process uses the budget with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetLibrary {
    /// The library `@actual-app/api`.
    Api,
    /// The library `actualpy`.
    Python,
    /// The web app `@actual-app/web` in a browser.
    Web,
}

/// A client process, which ends when this is dropped.
pub(crate) struct BudgetClient {
    child: Child,
    /// The requests to the process, which ends when they are closed.
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    log: PathBuf,
}

/// The location of a budget on the server.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct BudgetLocation {
    pub(crate) file: String,
    pub(crate) group: String,
}

/// A budget as the server lists it.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct ListedBudgetFile {
    pub(crate) file: String,
    pub(crate) group: Option<String>,
    pub(crate) name: String,
    /// The encryption key's id.
    pub(crate) key: Option<String>,
}

/// The contents of a copy of a budget.
pub(crate) struct BudgetSnapshot {
    name: String,
    /// The balances in cents, by the account's name.
    pub(crate) balances: BTreeMap<String, i64>,
    /// The transactions by their own ids.
    transactions: BTreeMap<String, BudgetTransaction>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "BudgetRow")]
pub(crate) struct BudgetTransaction {
    id: String,
    imported: Option<String>,
    date: String,
    /// The amount in cents.
    pub(crate) amount: i64,
    pub(crate) notes: Option<String>,
    account: String,
    payee: Option<String>,
}

type BudgetRow = (String, Option<String>, String, i64, Option<String>, String, Option<String>);

impl From<BudgetRow> for BudgetTransaction {
    fn from(row: BudgetRow) -> Self {
        let (id, imported, date, amount, notes, account, payee) = row;
        Self { id, imported, date, amount, notes, account, payee }
    }
}

impl BudgetSnapshot {
    /// Asserts that both are equal; a failure shows only the differences.
    #[track_caller]
    pub(crate) fn check_equal(&self, other: &Self) {
        let differing = |one: &Self, other: &Self| -> Vec<BudgetTransaction> {
            let transactions = one.transactions.iter();
            let only = transactions.filter(|(id, one)| other.transactions.get(*id) != Some(*one));
            only.map(|(_, one)| one.clone()).collect()
        };
        assert_eq!(differing(self, other), differing(other, self));
        assert_eq!((&self.name, &self.balances), (&other.name, &other.balances));
    }

    pub(crate) fn len(&self) -> usize {
        self.transactions.len()
    }

    /// Returns the numbers of this account's imported transactions, as [`BudgetClient::import`]
    /// assigned them.
    pub(crate) fn imported(&self, account: &str) -> Vec<u64> {
        let ids = self.transactions.values().filter_map(|one| one.imported.as_deref());
        let numbers = ids.filter_map(|id| id.strip_prefix(account)?.trim().parse().ok());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the transaction that was imported as `Bank 7`, for example.
    #[track_caller]
    pub(crate) fn find(&self, imported: &str) -> &BudgetTransaction {
        let found =
            self.transactions.values().find(|one| one.imported.as_deref() == Some(imported));
        found.unwrap_or_else(|| panic!("no {imported}"))
    }
}

impl BudgetClient {
    /// Starts a client without a login. It keeps its data in `folder`, which may exist.
    pub(crate) fn start(library: BudgetLibrary, folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let mut command = match library {
            BudgetLibrary::Api => node("client.js"),
            BudgetLibrary::Web => node("web.js"),
            BudgetLibrary::Python => {
                let mut python = Command::new(python());
                python.arg(format!("{SCRIPTS}/client.py"));
                python
            }
        };
        let log = folder.with_extension("log");
        let errors = File::options().create(true).append(true).open(&log).unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        let requests = child.stdin.take();
        let (sender, answers) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines() {
                // A test that has failed does not receive.
                drop(sender.send(line.unwrap()));
            }
        });
        Self { child, requests, answers, log }
    }

    /// Starts a client and logs in; the first one to do so sets the password.
    #[track_caller]
    pub(crate) fn sign_in(
        library: BudgetLibrary,
        address: &str,
        password: &str,
        folder: &Path,
    ) -> Self {
        let mut client = Self::start(library, folder);
        client.ask(&sign_in(address, password, folder)).unwrap();
        client
    }

    /// Kills the process, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), None, "it had ended by itself: {status}");
    }

    /// Sends a request; returns the answer or the reason of the failure.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, String> {
        self.send(request);
        self.answer()
    }

    /// Sends a request without waiting.
    pub(crate) fn send(&mut self, request: &Value) {
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> Result<Value, String> {
        let line = self.answers.recv_timeout(ANSWER_TIME_MAX);
        let line = line.unwrap_or_else(|error| panic!("no answer: {error}"));
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        match answer.get("error") {
            Some(reason) => Err(reason.as_str().map_or_else(|| reason.to_string(), str::to_owned)),
            None => Ok(answer["ok"].take()),
        }
    }

    /// Sends a request that must succeed.
    #[track_caller]
    pub(crate) fn get<T: for<'a> Deserialize<'a>>(&mut self, request: &Value) -> T {
        let answer = self.ask(request).unwrap_or_else(|reason| panic!("{request}: {reason}"));
        serde_json::from_value(answer).unwrap()
    }

    /// Sends a request that has no answer.
    #[track_caller]
    pub(crate) fn run(&mut self, request: &Value) {
        self.get::<Value>(request);
    }

    #[track_caller]
    pub(crate) fn create(&mut self, name: &str) -> BudgetLocation {
        self.get(&json!({"do": "create", "name": name}))
    }

    #[track_caller]
    pub(crate) fn open(&mut self, place: &BudgetLocation, key: Option<&str>) -> BudgetLocation {
        self.get(&json!({"do": "open", "group": place.group, "key": key}))
    }

    /// Discards the local copy and downloads the budget.
    #[track_caller]
    pub(crate) fn again(&mut self, key: Option<&str>) -> BudgetLocation {
        self.get(&json!({"do": "again", "key": key}))
    }

    #[track_caller]
    pub(crate) fn files(&mut self) -> Vec<ListedBudgetFile> {
        self.get(&json!({"do": "files"}))
    }

    #[track_caller]
    pub(crate) fn account(&mut self, name: &str) {
        self.run(&json!({"do": "account", "name": name}));
    }

    /// Imports transactions `first`, `first + 1` …, each of one cent more than its number.
    #[track_caller]
    pub(crate) fn import(&mut self, account: &str, first: u64, count: u64) {
        let request = json!({"do": "import", "account": account, "from": first, "count": count});
        assert_eq!(self.get::<u64>(&request), count);
    }

    #[track_caller]
    pub(crate) fn edit(&mut self, imported: &str, set: &Value) {
        self.run(&json!({"do": "edit", "imported": imported, "set": set}));
    }

    /// Sends local changes, and fetches those of others.
    pub(crate) fn try_sync(&mut self) -> Result<(), String> {
        self.ask(&json!({"do": "sync"})).map(drop)
    }

    #[track_caller]
    pub(crate) fn sync(&mut self) {
        self.try_sync().unwrap();
    }

    #[track_caller]
    pub(crate) fn state(&mut self) -> BudgetSnapshot {
        #[derive(Deserialize)]
        struct BudgetClientReply {
            name: String,
            balances: BTreeMap<String, i64>,
            transactions: Vec<BudgetTransaction>,
        }
        let BudgetClientReply { name, balances, transactions } = self.get(&json!({"do": "state"}));
        let transactions = transactions.into_iter().map(|one| (one.id.clone(), one)).collect();
        BudgetSnapshot { name, balances, transactions }
    }

    /// Encrypts the budget, which gets another location.
    #[track_caller]
    pub(crate) fn encrypt(&mut self, key: &str) -> BudgetLocation {
        self.get(&json!({"do": "encrypt", "key": key}))
    }

    #[track_caller]
    pub(crate) fn reset(&mut self) -> BudgetLocation {
        self.get(&json!({"do": "reset"}))
    }
}

impl Drop for BudgetClient {
    #[expect(clippy::print_stdout, reason = "libtest shows it when the test fails")]
    fn drop(&mut self) {
        // Without requests it ends on its own, and so does its browser.
        drop(self.requests.take());
        if thread::panicking() {
            // The process may be stuck.
            drop(self.child.kill());
        }
        drop(self.child.wait());
        if thread::panicking() {
            println!("{} wrote:\n{}", self.log.display(), end_of_log(&self.log));
        }
    }
}

pub(crate) fn sign_in(address: &str, password: &str, folder: &Path) -> Value {
    json!({"do": "sign-in", "address": address, "password": password, "dir": folder})
}

fn node(script: &str) -> Command {
    let mut node = Command::new(installed(".bin/node"));
    node.arg(format!("{SCRIPTS}/{script}")).arg(packages());
    // This is for a distribution without Chromium.
    node.env("PLAYWRIGHT_BROWSERS_PATH", packages().with_file_name("browsers"));
    node
}

fn python() -> PathBuf {
    let python = std::env::var_os("WARREN_PYTHON").unwrap_or_else(|| PYTHON.into());
    let python = PathBuf::from(python);
    let there = python.is_file();
    assert!(there, "no {}: `make test` installs it; WARREN_PYTHON names another", python.display());
    python
}

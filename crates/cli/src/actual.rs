//! `warren actual`: the operator's side of what Actual Budget's apps keep here.

mod export;
mod import;
mod list;
mod undelete;

use accounts::Unlocked;
use actual::inventory::{self, Inventory};
use clap::{Args, Subcommand};

use crate::account::{House, Place};
use crate::output::{Output, size};
use crate::password::Source;

/// Take over what another server has of Actual Budget's apps; list, export and bring back budgets.
#[derive(Subcommand)]
pub(crate) enum Command {
    Import(import::Import),
    List(list::List),
    Export(export::Export),
    Undelete(undelete::Undelete),
}

pub(crate) fn run(command: &Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Import(arguments) => import::run(arguments, output),
        Command::List(arguments) => list::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        Command::Undelete(arguments) => undelete::run(arguments, output),
    }
}

/// The account whose budgets they are, on the data directory.
#[derive(Args)]
struct AccountArguments {
    /// The account that has the budgets.
    #[arg(long, default_value = "actual", value_name = "LOGIN")]
    login: String,
    #[command(flatten)]
    password: Source,
    #[command(flatten)]
    place: Place,
}

impl AccountArguments {
    fn unlock(&self) -> anyhow::Result<(House, Unlocked)> {
        let house = House::open(&self.place)?;
        let unlocked = house.unlock(&self.login, &self.password)?;
        Ok((house, unlocked))
    }
}

fn inventory<'a>(house: &'a House, unlocked: &'a Unlocked) -> Inventory<'a> {
    let (accounts, vaults, runtime) = (&house.accounts, &house.vaults, house.runtime());
    Inventory { accounts, vaults, runtime, unlocked }
}

/// With the code that the error behind it has.
fn told(error: inventory::Error) -> anyhow::Error {
    match error {
        inventory::Error::Accounts(error) => error.into(),
        inventory::Error::Store(error) => error.into(),
        error => error.into(),
    }
}

/// What people are told of a budget, imported or listed.
struct Shown<'a> {
    name: Option<&'a str>,
    file_id: &'a str,
    messages_count: u64,
    file_bytes: Option<u64>,
    is_encrypted: bool,
    is_deleted: bool,
    is_reset: bool,
}

impl Shown<'_> {
    fn line(&self) -> String {
        let name = self.name.unwrap_or(self.file_id);
        let file = match self.file_bytes {
            Some(bytes) => format!("file of {}", size(bytes)),
            None => "no file".to_owned(),
        };
        let marks = [
            (self.is_encrypted, ", encrypted by the apps"),
            (self.is_deleted, ", deleted"),
            (self.is_reset, ", reset and not uploaded since"),
        ];
        let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
        format!("{name}: {} messages, {file}{marks}", self.messages_count)
    }
}

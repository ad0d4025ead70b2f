//! `warren actual`: the operator's side of what Actual Budget's apps keep here.

mod import;
mod list;

use clap::Subcommand;

use crate::output::{Output, size};

/// Take over what another server has of Actual Budget's apps, and list what is here.
#[derive(Subcommand)]
pub(crate) enum Command {
    Import(import::Import),
    List(list::List),
}

pub(crate) fn run(command: &Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Import(arguments) => import::run(arguments, output),
        Command::List(arguments) => list::run(arguments, output),
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

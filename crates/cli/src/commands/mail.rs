//! Implements `warren mail`: sets up mail for accounts, and reads, imports and exports it.
//!
//! The commands work directly in the data directory, also while a server is running.

pub(crate) mod address;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
mod mail_account;
pub(crate) mod mailboxes;
pub(crate) mod password;
pub(crate) mod show;
pub(crate) mod spool;

use clap::Subcommand;

use crate::output::Printer;

/// Set up mail for an account; import, read, search and export it.
#[derive(Subcommand)]
pub(crate) enum MailCommand {
    #[command(subcommand)]
    Address(address::MailAddressCommand),
    Import(import::MailImportArgs),
    Mailboxes(mailboxes::MailboxListArgs),
    List(list::MailListArgs),
    Show(show::MailShowArgs),
    Search(list::MailSearchArgs),
    Export(export::MailExportArgs),
    #[command(subcommand)]
    Password(password::MailPasswordCommand),
    #[command(subcommand)]
    Spool(spool::MailSpoolCommand),
}

pub(crate) fn run(command: &MailCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        MailCommand::Address(command) => address::run(command, output),
        MailCommand::Import(arguments) => import::run(arguments, output),
        MailCommand::Mailboxes(arguments) => mailboxes::run(arguments, output),
        MailCommand::List(arguments) => list::list(arguments, output),
        MailCommand::Show(arguments) => show::run(arguments, output),
        MailCommand::Search(arguments) => list::search(arguments, output),
        MailCommand::Export(arguments) => export::run(arguments, output),
        MailCommand::Password(command) => password::run(command, output),
        MailCommand::Spool(command) => spool::run(command, output),
    }
}

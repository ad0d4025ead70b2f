//! Implements `warren actual-budget import`: imports an existing server's data into a new account.

use std::path::{Path, PathBuf};

use accounts::{Login, Password};
use actual::import::{
    ImportDestination, ImportError, ImportReport, ImportedBudget, SkippedData, SourceServer, import,
};
use clap::Args;
use doctor::{FileHolder, counted, file_holders};
use engine::clock::now_ms;
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::budget_account::BudgetLine;
use crate::args::data_dir::{DataDir, StorageArgs};
use crate::args::password::PasswordSource;
use crate::output::{CommandError, Printer};
use crate::signals;

/// Import the budgets, messages, tokens and password of an Actual Budget server.
///
/// Stop that server first. Its directories are not changed, so you can start it again. Apps keep
/// working if Warren answers at the same address. Either all budgets are imported or none; an
/// interrupted import can be run again.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren actual-budget import /srv/actual/data --data /srv/warren\n  \
                        warren serve --data /srv/warren --actual-budget 127.0.0.1:5006\n  \
                        warren actual-budget import --server-files sf --user-files uf --password-file p"
)]
pub(crate) struct BudgetImportArgs {
    /// Directory that contains the server's `server-files` and `user-files`.
    #[arg(required_unless_present_all = ["server_files", "user_files"])]
    dir: Option<PathBuf>,
    /// Directory that contains `account.sqlite`, if it is not DIR/server-files.
    #[arg(long, value_name = "DIR")]
    server_files: Option<PathBuf>,
    /// Directory that contains the budget files, if it is not DIR/user-files.
    #[arg(long, value_name = "DIR")]
    user_files: Option<PathBuf>,
    /// Login of the account to create. Pass the same to `warren serve --actual-budget-login`.
    #[arg(long, default_value = "actual", value_name = "LOGIN")]
    login: String,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    place: StorageArgs,
}

/// The output of `warren actual-budget import`.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetImportOutput {
    /// The login of the new account.
    login: String,
    /// The imported and the skipped data.
    report: ImportReport,
}

impl BudgetImportArgs {
    /// Returns the given directory, or else the one below DIR.
    fn folder(&self, given: Option<&PathBuf>, name: &str) -> anyhow::Result<PathBuf> {
        let below = || self.dir.as_ref().map(|dir| dir.join(name));
        let missing = || CommandError::usage(format!("give DIR or --{name}"));
        Ok(given.cloned().or_else(below).ok_or_else(missing)?)
    }
}

pub(crate) fn run(arguments: &BudgetImportArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let server_files = arguments.folder(arguments.server_files.as_ref(), "server-files")?;
    let user_files = arguments.folder(arguments.user_files.as_ref(), "user-files")?;
    check_stopped(&SourceServer::account_file(&server_files))?;
    let told = |error| explain_error(error, &login);
    signals::remove_temporary_files_first()?;
    let published = SourceServer::open(&server_files, &user_files, now_ms()).map_err(told)?;
    let password = arguments.password.read("The old server's password: ")?;
    published.check_password(&password).map_err(told)?;
    let password = Password::parse_any_length(password)?;
    let data_dir = DataDir::open_or_create(&arguments.place)?;
    let to = ImportDestination {
        accounts: &data_dir.accounts,
        vaults: &data_dir.vaults,
        login: &login,
        runtime: data_dir.runtime(),
    };
    let bar = output.progress().with_message("importing");
    let imported = import(&published, &to, &password, now_ms(), |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = imported.map_err(told)?;
    print(&report, &login, output);
    output.json(&BudgetImportOutput { login: login.to_string(), report })
}

/// Checks that the old server is stopped: it keeps its account file open while it runs. A server in
/// a container of its own, or of another user, cannot be detected.
fn check_stopped(account_file: &Path) -> anyhow::Result<()> {
    let holders: Vec<String> =
        file_holders(account_file).iter().map(FileHolder::to_string).collect();
    let (file, holders_count) = (account_file.display(), holders.len());
    let who = holders.join("; ");
    let message = || format!("the old server is still running: {file} is open in {who}");
    anyhow::ensure!(holders_count == 0, CommandError::new(ErrorCode::Busy, message()));
    Ok(())
}

/// Adds a hint to the error, and its code from the closed list.
fn explain_error(error: ImportError, login: &Login) -> anyhow::Error {
    match error {
        ImportError::Accounts(accounts::Error::AccountExists) => {
            let message = format!("the account {login} already exists");
            CommandError::new(ErrorCode::AccountExists, message)
                .with_hint("import into another data directory, or pass another --login")
                .into()
        }
        error => error.into(),
    }
}

fn print(report: &ImportReport, login: &Login, output: Printer) {
    if report.resumed {
        output.line(format_args!("removed the remains of an interrupted import"));
    }
    let budgets = counted(report.budgets.len() as u64, "budget", "budgets");
    output.line(format_args!("imported {budgets} into account {login}"));
    for budget in &report.budgets {
        output.line(format_args!("  {}", describe(budget)));
    }
    let tokens = counted(report.tokens_count, "token", "tokens");
    output.line(format_args!("{tokens} and the password remain valid"));
    for line in describe_skipped(&report.skipped) {
        output.line(format_args!("skipped: {line}"));
    }
}

fn describe(budget: &ImportedBudget) -> String {
    let shown = BudgetLine {
        name: budget.name.as_deref(),
        file_id: &budget.file_id,
        messages_count: budget.messages_count,
        file_bytes: budget.file_bytes,
        is_encrypted: budget.encrypted,
        is_deleted: budget.deleted,
        is_reset: budget.group_id.is_none(),
    };
    let no_file = match budget.file_bytes {
        Some(_) => "",
        None => " (devices that have it can use it; others get it once one of these uploads it)",
    };
    let trie = match &budget.trie_fault {
        None => "trie verified".to_owned(),
        Some(fault) => format!("trie rebuilt: {fault}"),
    };
    let rows = &budget.not_canonical;
    let rows = match rows.rows_count {
        0 => String::new(),
        count => {
            let skipped = counted(count, "row", "rows");
            format!("; {skipped} skipped, not canonical: {}", rows.examples.join(", "))
        }
    };
    format!("{}{no_file}; {trie}{rows}", shown.line())
}

fn describe_skipped(skipped: &SkippedData) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &skipped.files_of_others {
        let name = file.name.as_deref().unwrap_or(&file.file_id);
        lines.push(format!("budget {name} of {}: only one user is supported", file.owner));
    }
    for access in &skipped.access_of_others {
        let name = access.name.as_deref().unwrap_or(&access.file_id);
        lines.push(format!("access of {} to {name}: only one user is supported", access.user));
    }
    for id in &skipped.files_with_invalid_id {
        lines.push(format!("budget {id:?}: invalid id"));
    }
    for (count, what) in [
        (skipped.expired_tokens_count, "expired tokens"),
        (skipped.tokens_of_others_count, "tokens of other users"),
        (skipped.invalid_tokens_count, "tokens that are too short or too long"),
        (skipped.secrets_count, "bank access keys (Warren does not connect to banks)"),
    ] {
        if count > 0 {
            lines.push(format!("{what}: {count}"));
        }
    }
    if skipped.openid {
        lines.push("OpenID login: log in with the password from now on".to_owned());
    }
    if !skipped.stray_files.is_empty() {
        let names = skipped.stray_files.join(", ");
        lines.push(format!("files that belong to no budget: {names}"));
    }
    lines
}

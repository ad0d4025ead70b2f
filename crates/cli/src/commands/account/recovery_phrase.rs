//! Implements `warren account recovery-phrase`: 24 words with which the owner of an account sets a
//! new password when the old one is lost.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use accounts::{AccountRecoverySecret, Login, UnlockedAccount};
use anyhow::Context;
use clap::Args;
use protocol::ErrorCode;
use replica::RecoveryPhrase;
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::args::password::PasswordSource;
use crate::commands::recovery_phrase::print_words;
use crate::output::{CommandError, Printer};

/// Create an account's recovery phrase, which replaces a lost password.
///
/// The phrase opens everything that the password opens, including the mail. It is shown once. Keep
/// it on paper: everyone who has it can set a new password with `warren account password`.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren account recovery-phrase ada\n  \
                        warren account password ada --recovery-phrase-file phrase.txt")]
pub(crate) struct AccountRecoveryPhraseArgs {
    /// Account that the phrase is for.
    login: String,
    /// Confirm that the phrase replaces an earlier one, which then opens nothing any more.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    data: DataDirArgs,
}

/// The output of `warren account recovery-phrase`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountRecoveryPhraseOutput<'a> {
    /// The login of the account.
    login: String,
    /// The 24 words of the account recovery phrase, separated by spaces. It is not stored, and not
    /// shown again.
    recovery_phrase: &'a str,
}

pub(super) fn run(arguments: &AccountRecoveryPhraseArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let account = data_dir.accounts.find(&login)?.account;
    let is_first = !data_dir.accounts.has_recovery_secret(account)?;
    let message = || format!("the account {login} has a recovery phrase, which this replaces");
    let unconfirmed = || CommandError::new(ErrorCode::ConfirmationRequired, message());
    anyhow::ensure!(is_first || arguments.yes, unconfirmed());
    let unlocked = data_dir.unlock(login.as_str(), &arguments.password)?;
    let phrase = create(&data_dir, &unlocked, output)?;
    output.json(&AccountRecoveryPhraseOutput {
        login: login.to_string(),
        recovery_phrase: &phrase.words(),
    })
}

/// Creates an account recovery phrase, and prints it with what it is for.
fn create(
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
    output: Printer,
) -> anyhow::Result<RecoveryPhrase> {
    let secret = data_dir.accounts.create_recovery_secret(unlocked)?;
    let phrase = RecoveryPhrase::from_entropy(Zeroizing::new(*secret.as_bytes()));
    let login = &unlocked.login;
    output.text(format_args!(
        "\nACCOUNT RECOVERY PHRASE. Write it down. It is not shown again. With it you can set a\n\
         new password for {login} when the password is lost; so can everyone else who has it.\n"
    ));
    print_words(&phrase, output);
    output.text(format_args!(
        "\nTo use it, run `warren account password {login} --recovery-phrase-file FILE`.\n"
    ));
    Ok(phrase)
}

/// Offers a recovery phrase to the owner of an account that now holds data which exists nowhere
/// else. Asks only a person who has typed the password, and prints the command for all others.
pub(crate) fn offer(
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
    password: &PasswordSource,
    output: Printer,
) -> anyhow::Result<()> {
    if data_dir.accounts.has_recovery_secret(unlocked.account)? {
        return Ok(());
    }
    let login = &unlocked.login;
    let can_ask =
        !output.json && password.password_file.is_none() && std::io::stdin().is_terminal();
    if can_ask {
        output.text(format_args!(
            "If the password is lost, no one can read the mail, unless you have a recovery phrase.\n\
             Create one now? [Y/n]"
        ));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let is_answered = read.context("cannot read the answer")? > 0;
        if is_answered && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes") {
            create(data_dir, unlocked, output)?;
            return Ok(());
        }
    }
    output.line(format_args!(
        "  without a recovery phrase, mail is lost with the password: run `warren account \
         recovery-phrase {login}`"
    ));
    Ok(())
}

/// Opens an account with the recovery phrase in a file.
pub(super) fn unlock(
    data_dir: &DataDir,
    login: &Login,
    file: &Path,
) -> anyhow::Result<UnlockedAccount> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let phrase = RecoveryPhrase::parse(&Zeroizing::new(text))?;
    let secret = AccountRecoverySecret::from_bytes(Zeroizing::new(*phrase.entropy()));
    Ok(data_dir.accounts.unlock_by_recovery(login, &secret)?)
}

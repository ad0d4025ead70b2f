//! Implements `warren recovery-phrase`, and reads and creates recovery phrases for the other
//! commands.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use replica::{RecoveryPhrase, RecoveryPhraseError, Replica};
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use crate::args::key_args::TrackedFileArgs;
use crate::output::Printer;

/// Print the recovery phrase of an end-to-end encrypted file.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren recovery-phrase a.db\n  warren recovery-phrase a.db > phrase.txt\n  \
                        warren clone b.db --server http://127.0.0.1:4600 --login ada \
                        --recovery-phrase-file phrase.txt"
)]
pub(crate) struct RecoveryPhraseArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
}

/// The output of `warren recovery-phrase`: the recovery phrase of a file.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryPhraseOutput<'a> {
    /// The 24 words of the recovery phrase, separated by spaces.
    recovery_phrase: &'a str,
}

/// Recovery phrase of the other devices.
#[derive(Args)]
pub(crate) struct RecoveryPhraseSource {
    /// Read the recovery phrase of your other devices from this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) recovery_phrase_file: Option<PathBuf>,
    /// Confirm that the recovery phrase was created for this account, which has no encrypted data
    /// yet.
    #[arg(long, requires = "recovery_phrase_file")]
    new_account: bool,
}

impl RecoveryPhraseSource {
    /// Stores the given phrase in the file; `false` if none was given.
    pub(crate) fn apply_to(&self, replica: &Replica) -> anyhow::Result<bool> {
        let Some(path) = &self.recovery_phrase_file else { return Ok(false) };
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let phrase = RecoveryPhrase::parse(&Zeroizing::new(text))?;
        replica.set_recovery_phrase(&phrase)?;
        if self.new_account {
            replica.confirm_new_account()?;
        }
        Ok(true)
    }
}

/// Prompts for the phrase of the other devices; `false` without a terminal.
pub(crate) fn prompt_for_phrase(replica: &Replica, output: Printer) -> anyhow::Result<bool> {
    if output.json || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    // The input is echoed: 24 words are too many to type unseen.
    output.text(format_args!(
        "This account is end-to-end encrypted. Run `warren recovery-phrase FILE` on another\n\
         device to see its recovery phrase, and type the phrase here, on one line:\n"
    ));
    let mut words = Zeroizing::new(String::new());
    std::io::stdin().lock().read_line(&mut words).context("cannot read the recovery phrase")?;
    replica.set_recovery_phrase(&RecoveryPhrase::parse(&words)?)?;
    Ok(true)
}

pub(crate) fn run(arguments: &RecoveryPhraseArgs, output: Printer) -> anyhow::Result<()> {
    let phrase = arguments.tracked.open()?.recovery_phrase()?;
    let phrase = phrase.ok_or(replica::Error::RecoveryPhrase(RecoveryPhraseError::NotSet))?;
    let words = phrase.words();
    output.line(format_args!("{}", *words));
    output.json(&RecoveryPhraseOutput { recovery_phrase: &words })
}

/// Creates a phrase for the file and returns it, or `None` if the file already had one.
pub(crate) fn create_phrase(
    replica: &Replica,
    output: Printer,
) -> anyhow::Result<Option<RecoveryPhrase>> {
    let was_there = replica.recovery_phrase()?.is_some();
    let phrase = replica.create_recovery_phrase()?;
    if !was_there {
        return Ok(Some(phrase));
    }
    output.line(format_args!(
        "already end-to-end encrypted (`warren recovery-phrase` shows the phrase)"
    ));
    explain_enabling_e2ee(replica, output)?;
    Ok(None)
}

/// Prints a new phrase of end-to-end encryption, with what it is for.
pub(crate) fn print_phrase(phrase: &RecoveryPhrase, output: Printer) {
    output.text(format_args!(
        "\nRECOVERY PHRASE. Write it down. Your other devices need it, and without it no one,\n\
         not even the server's operator, can recover your data.\n"
    ));
    print_words(phrase, output);
    output.text(format_args!("\nRun `warren recovery-phrase FILE` to see it again.\n"));
}

/// Prints the words in six rows of four, so that people can copy them to paper.
pub(crate) fn print_words(phrase: &RecoveryPhrase, output: Printer) {
    let words = phrase.words();
    let words: Vec<_> = words.split(' ').collect();
    for (row, words) in words.chunks(4).enumerate() {
        let first = row * 4 + 1;
        output.line(format_args!("  {first:>2}  {}", words.join(" ")));
    }
}

/// Explains what happens to the data of a file that has synced without encryption.
pub(crate) fn explain_enabling_e2ee(replica: &Replica, output: Printer) -> anyhow::Result<()> {
    if replica.is_enabling_e2ee()? {
        output.text(format_args!(
            "The account is not encrypted until the next sync, which sends everything again,\n\
             encrypted. After that, the other devices need the recovery phrase. When each of them\n\
             has it or is revoked, the server deletes the unencrypted data.\n"
        ));
    }
    Ok(())
}

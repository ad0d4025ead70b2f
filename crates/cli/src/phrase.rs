//! `warren phrase`, and where the other commands get a recovery phrase from.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use replica::{Phrase, PhraseError, Replica};
use serde_json::json;
use zeroize::Zeroizing;

use crate::key::TrackedFile;
use crate::output::Output;

/// Show the recovery phrase of a file that encrypts end to end.
#[derive(Args)]
#[command(after_help = "Example:\n  warren phrase a.db\n  warren phrase a.db > phrase.txt\n  \
                        warren clone b.db --server http://127.0.0.1:4600 --login ada \
                        --phrase-file phrase.txt")]
pub(crate) struct Arguments {
    #[command(flatten)]
    tracked: TrackedFile,
}

/// Where the phrase of devices that encrypt end to end comes from.
#[derive(Args)]
pub(crate) struct PhraseSource {
    /// Join devices that encrypt end to end: their recovery phrase, in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) phrase_file: Option<PathBuf>,
}

impl PhraseSource {
    /// Gives the file the phrase; `false` if there is none to give.
    pub(crate) fn give(&self, replica: &Replica) -> anyhow::Result<bool> {
        let Some(path) = &self.phrase_file else { return Ok(false) };
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let phrase = Phrase::parse(&Zeroizing::new(text))?;
        replica.set_phrase(&phrase)?;
        Ok(true)
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let phrase = arguments.tracked.open()?.phrase()?;
    let phrase = phrase.ok_or(replica::Error::Phrase(PhraseError::Missing))?;
    output.line(format_args!("{}", *phrase.words()));
    output.value(&json!({"phrase": *phrase.words()}))
}

/// Makes a phrase for the file, unless it has one, and shows it this once.
pub(crate) fn make(replica: &Replica, output: Output) -> anyhow::Result<Option<Phrase>> {
    if replica.phrase()?.is_some() {
        output
            .line(format_args!("encrypted end to end already (`warren phrase` shows the phrase)"));
        return Ok(None);
    }
    let phrase = Phrase::generate();
    replica.set_phrase(&phrase)?;
    Ok(Some(phrase))
}

/// The words in six rows of four, as people copy them to paper.
pub(crate) fn show(phrase: &Phrase, output: Output) {
    output.text(format_args!(
        "\nRECOVERY PHRASE: write it down. The other devices need it, and without it nobody,\n\
         not even the server's operator, can get the data back.\n"
    ));
    let words = phrase.words();
    let words: Vec<_> = words.split(' ').collect();
    for (row, words) in words.chunks(4).enumerate() {
        let first = row * 4 + 1;
        output.line(format_args!("  {first:>2}  {}", words.join(" ")));
    }
    output.text(format_args!("\n`warren phrase FILE` shows it again.\n"));
}

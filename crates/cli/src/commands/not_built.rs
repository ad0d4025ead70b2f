//! Replaces `warren tune` and `warren bench` in a build without the feature `bench`, and explains
//! how to get them.

use clap::{Args, Subcommand};
use protocol::ErrorCode;

use crate::output::{CommandError, Printer};

/// Not included in this build.
#[derive(Args)]
pub(crate) struct TuneArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

/// Not included in this build.
#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    #[command(external_subcommand)]
    #[expect(dead_code, reason = "whatever it is, it is not run")]
    Any(Vec<String>),
}

pub(crate) fn run<Arguments>(_: Arguments, _: Printer) -> anyhow::Result<()> {
    let error =
        CommandError::new(ErrorCode::NotInstalled, "this build has neither `tune` nor `bench`");
    let hint = "`cargo build --profile dist --package cli` builds `target/dist/warren` with both";
    Err(error.with_hint(hint).into())
}

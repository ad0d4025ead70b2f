//! `warren bench bulk`.

use clap::Args;

use crate::output::Output;

/// Placeholder.
#[derive(Args)]
pub(crate) struct Bulk {}

pub(crate) fn run(_arguments: Bulk, _output: Output) -> anyhow::Result<()> {
    Ok(())
}

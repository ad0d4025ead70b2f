//! Removes temporary copies when Ctrl-C or SIGTERM ends a command.
//!
//! # Not here
//! - `warren serve` and `sync --watch`, which finish the work in progress → `commands/serve.rs`,
//!   `commands/sync/watch.rs`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Installs a handler: from now on, a signal that ends the process removes its temporary files
/// first. A second signal ends it at once.
pub(crate) fn remove_temporary_files_first() -> anyhow::Result<()> {
    let is_ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_default(signal, Arc::clone(&is_ending))?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        is_ending.store(true, Ordering::SeqCst);
        if let Err(error) = engine::remove_temporary_files() {
            // If standard error is closed, the error cannot be reported.
            drop(writeln!(std::io::stderr(), "warren: {error}"));
        }
        // This fails only for signals that do not exist.
        drop(emulate_default_handler(signal));
    };
    thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

//! Syncs once with a server, and shows the progress on the terminal.

use engine::clock::now_ms;
use indicatif::ProgressBar;
use replica::{Error, HttpTransport, Replica, SyncContext, SyncProgress, SyncReport, TrustedRoots};

use crate::output::Printer;

/// The address of the server, and the authorities that may have issued its certificate.
pub(crate) struct ServerAddress {
    pub(crate) address: String,
    pub(crate) roots: TrustedRoots,
}

impl ServerAddress {
    /// Returns the server that a signed-in file has stored.
    pub(crate) fn of(replica: &Replica) -> anyhow::Result<Self> {
        let address = replica.server()?.ok_or(Error::ServerNotConfigured)?;
        Ok(Self { address, roots: replica.trusted_roots()? })
    }

    /// Creates a transport with its own connections.
    pub(crate) fn http(&self) -> HttpTransport {
        HttpTransport::trusting(&self.address, self.roots.clone())
    }
}

pub(crate) fn sync_once(
    replica: &mut Replica,
    server: &ServerAddress,
    create_missing: bool,
    output: Printer,
) -> replica::Result<SyncReport> {
    let bar = output.progress();
    let mut progress = |progress| show_progress(&bar, progress);
    let options = SyncContext { create_missing, now_ms: &now_ms, progress: &mut progress };
    let report = replica.sync(&mut server.http(), options);
    bar.finish_and_clear();
    report
}

fn show_progress(bar: &ProgressBar, progress: SyncProgress) {
    let (what, done, total) = match progress {
        SyncProgress::Received(done, total) => ("receiving", done, total),
        SyncProgress::Sent(done, total) => ("sending", done, total),
        SyncProgress::Applied(done) => ("applying", done, done),
    };
    bar.set_message(what);
    // A total of 0 means that it is not known yet.
    if total > 0 {
        bar.set_length(total);
    } else {
        bar.unset_length();
    }
    bar.set_position(done);
}

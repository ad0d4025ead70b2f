//! Implements `warren sync --watch`: keeps a file in sync until a signal stops it.
//!
//! ```text
//! server ══ events ══► listener (thread) ─┐
//! file ── data_version, every POLL ───────┼─► loop (thread) ─► sync
//! Ctrl-C, SIGTERM ─► main ─► `stop` ──────┘
//! ```
//!
//! # Invariants
//! - While there is nothing to sync, the watch only reads the file's header every [`POLL`].
//! - A temporary failure is reported once, and retried after pauses that grow to a minute; a
//!   failure that requires the user ends the watch with its code.
//!
//! # Not here
//! - The connection that receives events → `event_listener.rs`.
//! - The steps of a sync → `replica`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::clock::now;
use protocol::{ErrorCode, VaultState};
use replica::{Error, Replica, RetryBackoff, SyncReport};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::event_listener::{EventListener, ListenerEvent};
use super::sync_once::ServerAddress;
use super::{describe, sync_once};
use crate::commands::status::sync_status;
use crate::output::Printer;

/// The interval of checks whether the file has changed.
const POLL: Duration = Duration::from_millis(200);
/// The longest wait for a program that writes without a pause.
const BURST_MAX: Duration = Duration::from_secs(2);
/// The time that a running sync has to finish after Ctrl-C. The next one resumes an interrupted
/// one.
const STOP_MAX: Duration = Duration::from_secs(5);

/// The watched file, and the options of the watch.
pub(super) struct WatchOptions {
    pub(super) replica: Replica,
    pub(super) server: ServerAddress,
    pub(super) create_missing: bool,
    pub(super) output: Printer,
}

/// Syncs now, and whenever there is something to sync, until a signal arrives.
pub(super) fn watch(watch: WatchOptions) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = Arc::new(AtomicBool::new(false));
        let (done, mut ended) = oneshot::channel();
        let is_stopped = Arc::clone(&stop);
        thread::Builder::new().name("watch".into()).spawn(move || {
            // After the signal, the receiver may be gone.
            drop(done.send(WatchLoop::new(watch).run(&is_stopped)));
        })?;
        tokio::select! {
            result = &mut ended => return result.context("the watch panicked")?,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.store(true, Ordering::Relaxed);
        match tokio::time::timeout(STOP_MAX, ended).await {
            Ok(result) => result.context("the watch panicked")?,
            Err(_cut) => Ok(()),
        }
    })
}

/// An output line of `warren sync --watch`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum WatchEvent {
    /// A sync was completed.
    Synced(Box<SyncReport>),
    /// A sync failed, and will be retried.
    Waiting {
        /// The code of the error.
        code: ErrorCode,
        /// The message of the error, for people.
        message: String,
    },
}

struct WatchLoop {
    watch: WatchOptions,
    listener: Option<EventListener>,
    /// The token of the listener: a copied file becomes another device at its first sync.
    token: Option<String>,
    data_version: i64,
    /// The time at which a change of the file was first seen, and whether the file was written to
    /// since the last check.
    changed: Option<Instant>,
    is_busy: bool,
    /// Whether there is something to sync, and when to retry after a failure.
    is_due: bool,
    retry_at: Option<Instant>,
    backoff: RetryBackoff,
    /// The failure that was reported last.
    last_reported_code: Option<ErrorCode>,
    /// Whether the devices' names were fetched.
    has_device_names: bool,
}

impl WatchLoop {
    fn new(watch: WatchOptions) -> Self {
        Self {
            watch,
            listener: None,
            token: None,
            data_version: 0,
            changed: None,
            is_busy: false,
            is_due: true,
            retry_at: None,
            backoff: RetryBackoff::default(),
            last_reported_code: None,
            has_device_names: false,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        self.data_version = self.watch.replica.data_version()?;
        while !stop.load(Ordering::Relaxed) {
            let is_late = self.retry_at.is_none_or(|again_at| again_at <= now());
            if self.is_due && is_late {
                self.sync()?;
            }
            self.wait_for_event()?;
            self.check_file()?;
        }
        Ok(())
    }

    /// Waits for [`POLL`], or until an event arrives.
    fn wait_for_event(&mut self) -> anyhow::Result<()> {
        let Some(listener) = &self.listener else {
            thread::park_timeout(POLL);
            return Ok(());
        };
        match listener.news.recv_timeout(POLL) {
            Ok(ListenerEvent::State(state)) => {
                // The server is reachable: the failed sync may be retried at once.
                self.retry_at = None;
                self.last_reported_code.take_if(|code| {
                    matches!(code, ErrorCode::Unreachable | ErrorCode::UnexpectedResponse)
                });
                self.is_due |= self.differs(&state)?;
            }
            Ok(ListenerEvent::Lost(error)) if is_permanent(&error) => return Err(error.into()),
            Ok(ListenerEvent::Lost(error)) => {
                // The server responds, but accepts no further subscriber, or a proxy blocks events:
                // then a sync polls instead.
                self.is_due |= matches!(
                    error,
                    Error::RejectedByServer { .. } | Error::UnexpectedResponse { .. }
                );
                self.report_failure_once(&error)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the listener panicked"),
        }
        Ok(())
    }

    /// Returns whether the vault differs from this file: a device's own push also causes an event.
    fn differs(&self, state: &VaultState) -> replica::Result<bool> {
        let status = self.watch.replica.remote()?;
        let cursor = status.map_or(0, |remote| remote.cursor);
        Ok(*state != VaultState::new(cursor, self.watch.replica.fingerprint()?))
    }

    /// Checks whether a program has written to the file, and waits for the end of a burst.
    fn check_file(&mut self) -> anyhow::Result<()> {
        match self.try_check_file() {
            // Another program writes for longer than Warren waits for a lock.
            Err(Error::Sqlite(error)) if is_locked(&error) => Ok(()),
            looked => Ok(looked?),
        }
    }

    fn try_check_file(&mut self) -> replica::Result<()> {
        let version = self.watch.replica.data_version()?;
        self.is_busy = version != self.data_version;
        self.data_version = version;
        if self.is_busy && self.changed.is_none() && self.watch.replica.may_have_changed()? {
            self.changed = Some(now());
        }
        let is_over = |since: Instant| !self.is_busy || now() - since >= BURST_MAX;
        if self.changed.is_some_and(is_over) {
            self.changed = None;
            self.is_due = true;
        }
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        let WatchOptions { replica, server, create_missing, output } = &mut self.watch;
        match sync_once(replica, server, *create_missing, *output) {
            Ok(report) => {
                self.is_due = false;
                self.synced(report)
            }
            Err(error) if is_permanent(&error) => Err(error.into()),
            Err(error) => {
                self.retry_at = Some(now() + self.backoff.next_delay());
                self.report_failure_once(&error)
            }
        }
    }

    fn synced(&mut self, report: SyncReport) -> anyhow::Result<()> {
        let output = self.watch.output;
        describe(self.watch.replica.path(), &report, output);
        let in_sync = report.in_sync;
        output.json(&WatchEvent::Synced(Box::new(report)))?;
        self.last_reported_code = None;
        self.retry_at = None;
        if in_sync {
            self.backoff.reset();
        } else {
            // Another device may have pushed during the sync; then an event also arrives.
            self.is_due = true;
            self.retry_at = Some(now() + self.backoff.next_delay());
        }
        let token = self.watch.replica.token()?;
        if self.token != token {
            let secret = token.as_deref().ok_or(Error::ServerNotConfigured)?;
            self.listener = Some(EventListener::start(self.watch.server.http(), secret)?);
            self.token = token;
        }
        if !self.has_device_names {
            // Device names are only for people: a sync does not fail because of them.
            self.has_device_names = sync_status::fetch_device_list(&self.watch.replica).is_ok();
        }
        Ok(())
    }

    /// Reports a temporary failure, once.
    fn report_failure_once(&mut self, error: &Error) -> anyhow::Result<()> {
        let message = error.to_string();
        let code = error.code();
        if self.last_reported_code == Some(code) {
            return Ok(());
        }
        self.last_reported_code = Some(code);
        let output = self.watch.output;
        output.line(format_args!("{message}; retrying [{code}]"));
        output.json(&WatchEvent::Waiting { code, message })
    }
}

/// Returns whether this sync can succeed only after the user has done something.
fn is_permanent(error: &Error) -> bool {
    match error {
        // A quota may be raised, and clocks are corrected.
        Error::RejectedByServer { code: ErrorCode::QuotaExceeded | ErrorCode::ClockDrift, .. }
        | Error::UnexpectedResponse { .. }
        | Error::Unreachable(_)
        // Certificates are renewed.
        | Error::Untrusted { .. } => false,
        // An older server has no events, so syncs poll it instead.
        Error::RejectedByServer { code: ErrorCode::NotFound, .. } => false,
        Error::RejectedByServer { code, .. } => !code.is_retryable(),
        Error::Sqlite(error) => !is_locked(error),
        _ => true,
    }
}

fn is_locked(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
}

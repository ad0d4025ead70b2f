//! Runs the thread that receives the server's events, and reconnects when the connection is lost.
//!
//! # Invariants
//! - At most one event waits: until the watch takes it, the thread reads no further, and the server
//!   skips outdated states.
//! - The thread ends when its [`EventListener`] is dropped: at once between two connections,
//!   otherwise at the next event or keep-alive.
//!   next sign of life.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;

use protocol::{ErrorCode, VaultState};
use replica::{Error, HttpTransport, RetryBackoff, ServerEvent};

/// An event of the listener: a state of the vault, or a lost connection.
pub(super) enum ListenerEvent {
    State(VaultState),
    /// The connection is lost. If the token was rejected, this is final; otherwise the thread
    /// reconnects.
    Lost(Error),
}

/// Runs the listener until it is dropped.
pub(super) struct EventListener {
    pub(super) news: Receiver<ListenerEvent>,
    /// The channel whose end stops the thread when this is dropped.
    _stop: SyncSender<()>,
}

impl EventListener {
    pub(super) fn start(http: HttpTransport, token: &str) -> std::io::Result<Self> {
        let token = token.to_owned();
        let (tell, news) = sync_channel(1);
        let (stop, stopped) = sync_channel(1);
        let thread = thread::Builder::new().name("listener".into());
        thread.spawn(move || run(&http, &token, &tell, &stopped))?;
        Ok(Self { news, _stop: stop })
    }
}

fn run(
    http: &HttpTransport,
    token: &str,
    tell: &SyncSender<ListenerEvent>,
    stopped: &Receiver<()>,
) {
    let mut backoff = RetryBackoff::default();
    loop {
        match listen(http, token, tell, stopped, &mut backoff) {
            Ok(ListenOutcome::Stopped) => return,
            // The server stops, or it no longer knows this device: the next connection shows which.
            Ok(ListenOutcome::ByServer) => {}
            Err(error) => {
                let code = ErrorCode::InvalidToken;
                let is_revoked =
                    matches!(&error, Error::RejectedByServer { code: c, .. } if *c == code);
                if tell.send(ListenerEvent::Lost(error)).is_err() || is_revoked {
                    return;
                }
            }
        }
        if stopped.recv_timeout(backoff.next_delay()) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The ways in which a connection ends without an error.
enum ListenOutcome {
    ByServer,
    /// The [`EventListener`] was dropped.
    Stopped,
}

/// Passes on the events of one connection.
fn listen(
    http: &HttpTransport,
    token: &str,
    tell: &SyncSender<ListenerEvent>,
    stopped: &Receiver<()>,
    backoff: &mut RetryBackoff,
) -> Result<ListenOutcome, Error> {
    let mut listening = http.subscribe(token)?;
    loop {
        let heard = listening.next_event()?;
        if stopped.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(ListenOutcome::Stopped);
        }
        match heard {
            ServerEvent::KeepAlive => {}
            ServerEvent::EndOfStream => return Ok(ListenOutcome::ByServer),
            ServerEvent::State(state) => {
                backoff.reset();
                if tell.send(ListenerEvent::State(state)).is_err() {
                    return Ok(ListenOutcome::Stopped);
                }
            }
        }
    }
}

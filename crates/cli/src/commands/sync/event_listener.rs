//! The thread that listens to the server, and asks again when it is gone.
//!
//! # Invariants
//! - One piece of news waits at most: while nobody takes it, the thread reads no further, and the
//!   server skips what is out of date.
//! - It ends when its [`EventListener`] is dropped: at once between two connections, else at the
//!   next sign of life.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;

use protocol::{ErrorCode, VaultState};
use replica::{Error, HttpTransport, RetryBackoff, ServerEvent};

/// What the server says, or that it says nothing.
pub(super) enum ListenerEvent {
    State(VaultState),
    /// The connection is gone; after a refusal of the token for good, else there will be another.
    Lost(Error),
}

/// Listens as long as it is there.
pub(super) struct EventListener {
    pub(super) news: Receiver<ListenerEvent>,
    /// Dropped with it.
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
            // It stops, or it does not know this device any more: the next answer says which.
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

/// How a connection ended in order.
enum ListenOutcome {
    ByServer,
    /// Nobody wants to know any more.
    Stopped,
}

/// One connection: passes on what it hears.
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

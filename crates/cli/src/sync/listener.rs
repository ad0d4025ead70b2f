//! The thread that listens to the server, and asks again when it is gone.
//!
//! # Invariants
//! - One piece of news waits at most: while nobody takes it, the thread reads no further, and the
//!   server skips what is out of date.
//! - It ends when its [`Listener`] is dropped: at once between two connections, else at the next
//!   sign of life.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;

use protocol::{ErrorCode, VaultState};
use replica::{Backoff, Error, Heard, Http};

/// What the server says, or that it says nothing.
pub(super) enum News {
    State(VaultState),
    /// The connection is gone; after a refusal of the token for good, else there will be another.
    Lost(Error),
}

/// Listens as long as it is there.
pub(super) struct Listener {
    pub(super) news: Receiver<News>,
    /// Dropped with it.
    _stop: SyncSender<()>,
}

impl Listener {
    pub(super) fn start(http: Http, token: &str) -> std::io::Result<Self> {
        let token = token.to_owned();
        let (tell, news) = sync_channel(1);
        let (stop, stopped) = sync_channel(1);
        let thread = thread::Builder::new().name("listener".into());
        thread.spawn(move || run(&http, &token, &tell, &stopped))?;
        Ok(Self { news, _stop: stop })
    }
}

fn run(http: &Http, token: &str, tell: &SyncSender<News>, stopped: &Receiver<()>) {
    let mut backoff = Backoff::default();
    loop {
        match listen(http, token, tell, stopped, &mut backoff) {
            Ok(Ended::Unwanted) => return,
            // It stops, or it does not know this device any more: the next answer says which.
            Ok(Ended::ByServer) => {}
            Err(error) => {
                let code = ErrorCode::InvalidToken;
                let is_revoked = matches!(&error, Error::Refused { code: c, .. } if *c == code);
                if tell.send(News::Lost(error)).is_err() || is_revoked {
                    return;
                }
            }
        }
        if stopped.recv_timeout(backoff.pause()) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// How a connection ended in order.
enum Ended {
    ByServer,
    /// Nobody wants to know any more.
    Unwanted,
}

/// One connection: passes on what it hears.
fn listen(
    http: &Http,
    token: &str,
    tell: &SyncSender<News>,
    stopped: &Receiver<()>,
    backoff: &mut Backoff,
) -> Result<Ended, Error> {
    let mut listening = http.listen(token)?;
    loop {
        let heard = listening.hear()?;
        if stopped.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(Ended::Unwanted);
        }
        match heard {
            Heard::SignOfLife => {}
            Heard::End => return Ok(Ended::ByServer),
            Heard::State(state) => {
                backoff.reset();
                if tell.send(News::State(state)).is_err() {
                    return Ok(Ended::Unwanted);
                }
            }
        }
    }
}

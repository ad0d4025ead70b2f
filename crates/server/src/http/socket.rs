//! A TCP connection that does not wait forever for its peer.
//!
//! - A peer that does not read what it is sent is dropped after [`STALL_MAX`]: by this file if more
//!   waits than the system's buffers hold; by the system ([`prepare`]) if less waits, as for a
//!   subscriber that has lost its network. A peer that reads a little now and then is dropped, too
//!   ([`ClientDelay`]).
//! - Data waits to be sent here, where it is counted: the system accepts at most
//!   [`UNSENT_BYTES_MAX`] of it.
//! - A refused peer may still be sending when the server closes (a body over the limit), so the
//!   server keeps reading for a moment. If it closed at once, the system would answer the peer's
//!   bytes with a reset, which destroys the response on the peer's side before it is read.
//!
//! # Not here
//! - Time limits for received data → `accept.rs` (heads) and `admission/body.rs`.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::admission::client_delay::ClientDelay;

/// The time that a peer may stall: longer than a phone's change from one network to another.
const STALL_MAX: Duration = Duration::from_millis(STALL_MS_MAX as u64);
const STALL_MS_MAX: u32 = 30_000;
/// Enough for the system to fill the network while the server produces more.
const UNSENT_BYTES_MAX: u32 = 128 << 10;
/// The time of silence after which a refused peer is finished.
const LINGER_QUIET_MAX: Duration = Duration::from_secs(2);
/// The limits of reading from a refused peer, in time and in bytes: four bodies of the usual limit.
const LINGER_MAX: Duration = Duration::from_secs(10);
pub(crate) const LINGER_BYTES_MAX: usize = 64 << 20;

/// Sets options so that small writes are sent at once and a peer that acknowledges none is dropped.
pub(crate) fn prepare(stream: &TcpStream) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::net::sockopt::set_tcp_user_timeout(stream, STALL_MS_MAX)?;
        SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    }
    stream.set_nodelay(true)
}

pub(crate) struct ClientSocket {
    stream: TcpStream,
    is_refused: Arc<AtomicBool>,
    stall: StallTimer,
    /// The lingering close, once our side is closed.
    linger: Option<LingeringClose>,
}

/// A timer for the writes that a peer keeps waiting.
#[derive(Default)]
struct StallTimer {
    delay: ClientDelay,
    /// The timer that ends a waiting write.
    end: Option<Pin<Box<Sleep>>>,
}

struct LingeringClose {
    quiet: Pin<Box<Sleep>>,
    end: Instant,
    bytes: usize,
}

impl ClientSocket {
    pub(crate) fn new(stream: TcpStream, is_refused: Arc<AtomicBool>) -> Self {
        Self { stream, is_refused, stall: StallTimer::default(), linger: None }
    }
}

impl StallTimer {
    fn watch(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        if let Poll::Ready(result) = written {
            self.end = None;
            self.delay.end_wait(Instant::now(), *result.as_ref().unwrap_or(&0));
            return Poll::Ready(result);
        }
        let waited = self.delay.wait(Instant::now());
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(STALL_MAX.saturating_sub(waited))));
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client reads too slowly")))
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.stall.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.stall.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Self { stream, is_refused, linger, .. } = self.get_mut();
        if linger.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        if !is_refused.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let linger = linger.get_or_insert_with(|| LingeringClose {
            quiet: Box::pin(sleep(LINGER_QUIET_MAX)),
            end: Instant::now() + LINGER_MAX,
            bytes: 0,
        });
        linger.poll(stream, context).map(Ok)
    }
}

impl LingeringClose {
    /// Is ready when the peer has closed, has been silent for a while, or has sent far too much.
    fn poll(&mut self, stream: &mut TcpStream, context: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = Pin::new(&mut *stream).poll_read(context, &mut buffer);
            let count = buffer.filled().len();
            match read {
                Poll::Pending => return self.quiet.as_mut().poll(context),
                Poll::Ready(Ok(())) if count > 0 => {
                    self.bytes += count;
                    if self.bytes > LINGER_BYTES_MAX {
                        return Poll::Ready(());
                    }
                    let quiet_until = Instant::now() + LINGER_QUIET_MAX;
                    self.quiet.as_mut().reset(quiet_until.min(self.end));
                }
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
    }
}

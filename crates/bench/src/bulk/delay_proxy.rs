//! Simulates a network: bytes arrive half a round trip later, in both directions.
//!
//! Each chunk has its own due time, so chunks that follow closely also arrive closely: the way is
//! longer, not narrower. The proxy uses threads, because their sleep is exact to a tenth of a
//! millisecond.
//!
//! # Invariants
//! - The proxy stops accepting connections when its value is dropped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::clock::now;

const PIECE_BYTES_MAX: usize = 64 << 10;
/// The number of chunks under way: 64 MiB, more than a statement has.
const PIECES_COUNT_MAX: usize = 1_024;

/// A proxy that accepts connections for another address and delays their bytes.
pub(super) struct DelayProxy {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

type DelayedChunk = (Instant, Vec<u8>);

impl DelayProxy {
    /// Starts a proxy that adds `round_trip` to each round trip to `to`.
    pub(super) fn start(to: SocketAddr, round_trip: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let accepting = thread::spawn(move || {
            for from in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                // If the connection fails, the client sees that it closes.
                drop(from.and_then(|from| connect(from, to, round_trip / 2)));
            }
        });
        Ok(Self { address, is_over, accepting: Some(accepting) })
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The thread checks the flag after each accepted connection.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

fn connect(from: TcpStream, to: SocketAddr, delay: Duration) -> std::io::Result<()> {
    let to = TcpStream::connect(to)?;
    from.set_nodelay(true)?;
    to.set_nodelay(true)?;
    pass(from.try_clone()?, to.try_clone()?, delay);
    pass(to, from, delay);
    Ok(())
}

/// Passes bytes on in one direction, until one side closes.
fn pass(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (tx, rx) = sync_channel(PIECES_COUNT_MAX);
    thread::spawn(move || deliver(&rx, to));
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if tx.send((now() + delay, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the way takes its time")]
fn deliver(pieces: &Receiver<DelayedChunk>, mut to: TcpStream) {
    for (due, piece) in pieces {
        thread::sleep(due.saturating_duration_since(now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // The other side may have closed the connection already.
    drop(to.shutdown(Shutdown::Write));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_not_early() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let round_trip = Duration::from_millis(4);
        let proxy = DelayProxy::start(listener.local_addr().unwrap(), round_trip).unwrap();
        let echo = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            std::io::copy(&mut stream.try_clone().unwrap(), &mut &stream).unwrap()
        });
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let start = now();
        let mut sending = stream.try_clone().unwrap();
        let mut received = vec![0; sent.len()];
        thread::scope(|scope| {
            scope.spawn(|| {
                sending.write_all(&sent).unwrap();
                sending.shutdown(Shutdown::Write).unwrap();
            });
            stream.read_exact(&mut received).unwrap();
        });
        assert!(start.elapsed() >= round_trip);
        assert!(received == sent);
        drop(stream);
        echo.join().unwrap();
    }
}

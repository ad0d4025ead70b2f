//! The mail server: receives mail by LMTP from a mail transfer agent such as Postfix, and stores it
//! sealed in the spool (Formats 22 and 23).
//!
//! # Invariants
//! - A message that was accepted is on the disk, sealed. The server needs no key for that, and
//!   holds the plaintext only while the message arrives.
//! - Every input has a limit: connections, bytes in memory, time, deliveries that wait.
//!
//! # Not here
//! - The protocol → `mail-protocol`. Sealing, the spool, filing → `mail-store`.
#![forbid(unsafe_code)]

mod connection;
mod counters;
mod delivery;
mod error;
mod limits;
mod memory;
mod overview;
mod room;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use accounts::Accounts;
use engine::Databases;
use mail_store::MailSpool;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::{BUSY_REPLY, ConnectionContext};
use crate::counters::MailCounters;
use crate::delivery::DeliveryTarget;
pub use crate::error::{Error, Result};
pub use crate::limits::CONNECTIONS_COUNT_MAX;
use crate::limits::{ADDRESS_CONNECTIONS_COUNT_MAX, DRAIN_MAX};
use crate::memory::DeliveryMemory;
pub use crate::overview::{MailOverview, MailOverviewReader};
use crate::room::MailRoom;

/// The settings of a mail server.
pub struct MailServerConfig {
    /// The address for LMTP. With port 0, the system chooses one.
    pub listen: SocketAddr,
    /// The name in the greeting and in the header field `Received`.
    pub server_name: String,
    /// The maximum size of an account's mail in bytes, unless the account has a limit of its own.
    pub mail_bytes_max: u64,
}

/// A mail server that listens already, and answers once [`Self::run`] is called.
pub struct MailServer {
    socket: TcpListener,
    address: SocketAddr,
    context: Arc<ConnectionContext>,
}

impl MailServer {
    /// Opens the spool of a data directory, which has these accounts, and binds the address. Blocks
    /// while the file is opened.
    pub async fn bind(
        databases: &Databases,
        accounts: Accounts,
        data: &Path,
        config: MailServerConfig,
    ) -> Result<Self> {
        let MailServerConfig { listen, server_name, mail_bytes_max } = config;
        let bind = async {
            let socket = TcpListener::bind(listen).await?;
            Ok((socket.local_addr()?, socket))
        };
        let bound = bind.await.map_err(|source| Error::Listen { address: listen, source });
        let (address, socket) = bound?;
        let spool = MailSpool::open(databases, data)?;
        let room = MailRoom::new(data, mail_bytes_max);
        let counters = MailCounters::default();
        let target = Arc::new(DeliveryTarget { accounts, spool, room, counters, server_name });
        let context = Arc::new(ConnectionContext { target, memory: DeliveryMemory::new() });
        Ok(Self { socket, address, context })
    }

    /// The address of the listener: with the given port, or the one that the system chose for port
    /// 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the reader of the server's overview.
    pub fn overview_reader(&self) -> MailOverviewReader {
        MailOverviewReader(Arc::clone(&self.context.target))
    }

    /// Receives mail until `shutdown` is ready, then ends the connections. A message that has
    /// arrived completely is still answered, unless the disk takes longer than 10 seconds.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { socket, context, .. } = self;
        let (stop, stopped) = watch::channel(());
        let counts = ConnectionCounts::default();
        let mut serving = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(_) = serving.join_next() => continue,
                accepted = socket.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("cannot accept a mail connection: {error}");
                    // The system may be out of files: give it time to close some.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (context, stopped) = (Arc::clone(&context), stopped.clone());
            let admitted = counts.admit(peer.ip());
            context.target.counters.count_connection();
            serving.spawn(async move {
                let Some(_admitted) = admitted else { return refuse(stream).await };
                drop(stream.set_nodelay(true));
                // The client may disconnect at any time.
                drop(connection::serve(&context, stream, peer.ip(), stopped).await);
            });
        }
        drop(socket);
        drop(stop);
        let drained = async { while serving.join_next().await.is_some() {} };
        if timeout(DRAIN_MAX, drained).await.is_err() {
            tracing::warn!("ended mail connections that did not end in time");
        }
    }
}

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

async fn refuse(mut stream: TcpStream) {
    let reply = async {
        stream.write_all(BUSY_REPLY).await?;
        stream.shutdown().await
    };
    drop(timeout(DRAIN_MAX, reply).await);
}

/// The number of open connections of each address.
#[derive(Clone, Default)]
struct ConnectionCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that was admitted. It counts until it is dropped.
struct AdmittedConnection {
    counts: ConnectionCounts,
    address: IpAddr,
}

impl ConnectionCounts {
    fn admit(&self, address: IpAddr) -> Option<AdmittedConnection> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = counts.values().sum::<usize>() >= CONNECTIONS_COUNT_MAX;
        let of_address = counts.get(&address).copied().unwrap_or(0);
        if is_full || of_address >= ADDRESS_CONNECTIONS_COUNT_MAX {
            return None;
        }
        counts.insert(address, of_address + 1);
        Some(AdmittedConnection { counts: self.clone(), address })
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

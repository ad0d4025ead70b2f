//! One LMTP connection: moves bytes between the client and the session, and answers its questions.
//!
//! # Invariants
//! - While the server writes, it reads no more: a client that does not read its replies cannot make
//!   the server hold more of its input.
//! - Bytes of a message are reserved before more of it is read.

use std::net::IpAddr;
use std::sync::Arc;

use mail_protocol::{LmtpConfig, LmtpEvent, LmtpRefusal, LmtpSession};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::delivery::DeliveryTarget;
use crate::limits::{IDLE_MAX, READ_BYTES};
use crate::memory::{DeliveryMemory, MessageMemory};

/// The data that all connections share.
pub(crate) struct ConnectionContext {
    pub(crate) target: Arc<DeliveryTarget>,
    pub(crate) memory: DeliveryMemory,
}

/// Why the server ends a connection, as its last reply.
const IDLE_REPLY: &[u8] = b"421 4.4.2 no input for too long\r\n";
const STOP_REPLY: &[u8] = b"421 4.3.2 the server stops\r\n";
pub(crate) const BUSY_REPLY: &[u8] = b"421 4.7.0 too many connections\r\n";

/// Serves a connection until it ends, the client is silent for too long, or the server stops.
pub(crate) async fn serve(
    context: &ConnectionContext,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: IpAddr,
    mut stopped: watch::Receiver<()>,
) -> std::io::Result<()> {
    let mut session = LmtpSession::new(LmtpConfig::new(context.target.server_name.clone()));
    let mut memory = MessageMemory::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        write(&mut stream, &session.take_output()).await?;
        if session.is_closed() {
            return stream.shutdown().await;
        }
        let read = tokio::select! {
            read = timeout(IDLE_MAX, stream.read(&mut buffer)) => read,
            // An error means that the sender is gone, which also stops the server.
            _ = stopped.changed() => return write(&mut stream, STOP_REPLY).await,
        };
        let Ok(read) = read else { return write(&mut stream, IDLE_REPLY).await };
        let count = read?;
        if count == 0 {
            return Ok(());
        }
        let mut input = &buffer[..count];
        while let Some(event) = session.next_event(&mut input) {
            answer(context, &mut session, event, peer).await;
            memory = MessageMemory::default();
        }
        if !context.memory.reserve(&mut memory, session.message_bytes()) {
            session.discard_message(LmtpRefusal::SystemFull);
            memory = MessageMemory::default();
        }
    }
}

async fn answer(
    context: &ConnectionContext,
    session: &mut LmtpSession,
    event: LmtpEvent,
    peer: IpAddr,
) {
    match event {
        LmtpEvent::Recipient(address) => {
            let answer = context.target.check_recipient(address).await;
            session.answer_recipient(answer);
        }
        LmtpEvent::Message(transaction) => {
            let answers = context.target.deliver(transaction, peer).await;
            session.answer_message(&answers);
        }
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    match timeout(IDLE_MAX, stream.write_all(bytes)).await {
        Ok(written) => written,
        Err(elapsed) => Err(elapsed.into()),
    }
}

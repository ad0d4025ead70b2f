//! A connection of the load generator to an LMTP server.
//!
//! It speaks as Postfix does: the connection stays open, and the envelope and DATA are sent at once
//! (PIPELINING). The next message waits for the answer to the last one.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The time limit of one delivery, and of a greeting.
const DELIVERY_TIME_MAX: Duration = Duration::from_mins(1);
/// The size limit of a line in a reply (RFC 5321, section 4.5.3.1.5).
const LINE_BYTES_MAX: u64 = 512;
const SENDER: &str = "bob@example.com";

/// An open LMTP session.
pub(super) struct LmtpConnection(BufReader<TcpStream>);

impl LmtpConnection {
    /// Connects, and greets the server.
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let mut connection = Self(BufReader::new(stream));
        let greet = async {
            connection.expect("220").await?;
            connection.0.write_all(b"LHLO client.example\r\n").await?;
            connection.expect("250").await
        };
        timeout(DELIVERY_TIME_MAX, greet).await.context("no greeting")??;
        Ok(connection)
    }

    /// Delivers a message to one recipient. Fails unless the server accepts it; then the
    /// connection is of no further use.
    pub(super) async fn deliver(&mut self, recipient: &str, message: &str) -> anyhow::Result<()> {
        let deliver = async {
            let envelope = format!("MAIL FROM:<{SENDER}>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n");
            self.0.write_all(envelope.as_bytes()).await?;
            for code in ["250", "250", "354"] {
                self.expect(code).await?;
            }
            self.0.write_all(message.as_bytes()).await?;
            self.expect("250").await
        };
        timeout(DELIVERY_TIME_MAX, deliver).await.context("no answer")?
    }

    /// Reads a reply, which must have this code.
    async fn expect(&mut self, code: &str) -> anyhow::Result<()> {
        loop {
            let mut line = String::new();
            let length = (&mut self.0).take(LINE_BYTES_MAX).read_line(&mut line).await?;
            ensure!(length > 0, "the server closed the connection");
            ensure!(line.starts_with(code), "the server answered: {}", line.trim_end());
            if line.as_bytes().get(code.len()) != Some(&b'-') {
                return Ok(());
            }
        }
    }
}

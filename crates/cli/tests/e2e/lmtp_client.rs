//! An LMTP client that sends what a test wants to send.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::processes::ServeProcess;

/// A connection to the LMTP listener.
pub(crate) struct LmtpClient {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl LmtpClient {
    pub(crate) fn connect(server: &ServeProcess) -> std::io::Result<Self> {
        let (mut client, _greeting) = Self::greeted(server)?;
        client.command("LHLO client.example")?;
        Ok(client)
    }

    /// Connects, and returns the greeting or refusal, too.
    pub(crate) fn greeted(server: &ServeProcess) -> std::io::Result<(Self, String)> {
        let stream = TcpStream::connect(server.lmtp.as_deref().unwrap())?;
        stream.set_nodelay(true)?;
        let replies = BufReader::new(stream.try_clone()?);
        let mut client = Self { stream, replies };
        let greeting = client.reply()?;
        Ok((client, greeting))
    }

    /// Sends a line and returns the last line of the reply.
    pub(crate) fn command(&mut self, line: &str) -> std::io::Result<String> {
        self.send(format!("{line}\r\n").as_bytes())?;
        self.reply()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn reply(&mut self) -> std::io::Result<String> {
        loop {
            let mut line = String::new();
            if self.replies.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line.trim_end().to_owned());
            }
        }
    }

    /// Delivers a message, and returns the reply after its end.
    pub(crate) fn deliver(&mut self, recipient: &str, message: &str) -> std::io::Result<String> {
        self.command("MAIL FROM:<bob@example.com>")?;
        let accepted = self.command(&format!("RCPT TO:<{recipient}>"))?;
        if !accepted.starts_with("250") {
            return Ok(accepted);
        }
        self.command("DATA")?;
        self.command(&format!("{message}\r\n."))
    }
}

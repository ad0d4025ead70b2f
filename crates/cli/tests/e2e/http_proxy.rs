//! A proxy that reads requests, as nginx does: it passes them on, or answers in the server's
//! place.
//!
//! # Not here
//! - The distribution's proxies → `operating/reverse_proxy.rs`.
//! - A proxy that counts bytes and cuts connections → `cutting_proxy.rs`.

use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The proxy's treatment of requests.
#[derive(Clone)]
pub(crate) enum ProxyRule {
    Pass,
    /// Answers all with this status, media type and body.
    Answer(u16, &'static str, Vec<u8>),
}

impl ProxyRule {
    /// Answers with a page for people.
    pub(crate) fn page(status: u16) -> Self {
        let page = format!("<html><head><title>{status}</title></head><body></body></html>\r\n");
        Self::Answer(status, "text/html", page.into_bytes())
    }
}

/// A proxy that listens until the test's process ends.
pub(crate) struct HttpProxy {
    pub(crate) address: String,
    rule: Arc<Mutex<ProxyRule>>,
}

impl HttpProxy {
    /// Starts a proxy to `server`, an address such as `http://127.0.0.1:4600`.
    pub(crate) fn to(server: &str, rule: ProxyRule) -> Self {
        let server = server.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let rule = Arc::new(Mutex::new(rule));
        let present = Arc::clone(&rule);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), server.clone());
                let rule = present.lock().unwrap().clone();
                // A client that is killed during a request causes an error here.
                thread::spawn(move || drop(answer(&client, &server, &rule)));
            }
        });
        Self { address, rule }
    }

    /// Changes the treatment of later connections.
    pub(crate) fn set(&self, rule: ProxyRule) {
        *self.rule.lock().unwrap() = rule;
    }
}

/// Answers one request, and closes the connection.
fn answer(client: &TcpStream, server: &str, rule: &ProxyRule) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let before = head.len();
        reader.read_line(&mut head)?;
        let line = head[before..].trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = reader.take(length);
    match rule {
        ProxyRule::Answer(status, media_type, content) => {
            write_answer(client, *status, media_type, content)?;
        }
        ProxyRule::Pass => {
            let mut server = TcpStream::connect(server)?;
            // The server closes the connection after its answer, so the end needs no parsing.
            let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
            server.write_all(head.as_bytes())?;
            copy(&mut body, &mut server)?;
            copy(&mut server, &mut &*client)?;
        }
    }
    client.shutdown(Shutdown::Write)?;
    copy(&mut body, &mut sink())?;
    Ok(())
}

fn write_answer(
    mut client: &TcpStream,
    status: u16,
    media_type: &str,
    content: &[u8],
) -> std::io::Result<()> {
    let length = content.len();
    let head = format!(
        "HTTP/1.1 {status} Answered\r\nserver: nginx\r\ncontent-type: {media_type}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(content)
}

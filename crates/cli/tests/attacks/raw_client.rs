//! Clients that speak HTTP byte by byte, from any address of this machine, and the honest user.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::iter;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crdt::{NodeId, Timestamp};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::attacked_server::AttackedServer;

pub(crate) const PASSWORD: &str = "a pass-phrase of one's own";

/// The longest wait for an answer; the test has failed long before.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(2);

/// Returns an address of this machine.
pub(crate) fn address(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 9, high, low)
}

/// Connects from an address.
pub(crate) fn connect(from: Ipv4Addr, to: SocketAddrV4) -> Result<TcpStream> {
    connect_with(from, to, None)
}

/// Connects with a receive buffer of at most `receive_bytes`.
pub(crate) fn connect_with(
    from: Ipv4Addr,
    to: SocketAddrV4,
    receive_bytes: Option<usize>,
) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(bytes) = receive_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(&SocketAddrV4::new(from, 0).into())?;
    socket.connect(&to.into())?;
    socket.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}

/// Returns a request's head; it announces a body of `body_bytes`.
pub(crate) fn head(method: &str, path: &str, token: &str, body_bytes: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {body_bytes}\r\n\r\n"
    )
}

/// A client that keeps its connection.
pub(crate) struct RawHttpClient {
    from: Ipv4Addr,
    to: SocketAddrV4,
    connection: Option<BufReader<TcpStream>>,
    /// The wait that the last answer asked for.
    retry_after: Option<Duration>,
}

impl RawHttpClient {
    pub(crate) fn new(from: Ipv4Addr, to: SocketAddrV4) -> Self {
        Self { from, to, connection: None, retry_after: None }
    }

    /// Sends a request; returns the status and the body.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let body = body.to_string();
        let request = head(method, path, token, body.len()) + &body;
        if let Some(kept) = self.connection.take() {
            // A server that has many connections closes idle ones.
            if let Ok(answer) = self.ask_on(kept, &request) {
                return Ok(answer);
            }
        }
        let connection = BufReader::new(connect(self.from, self.to)?);
        self.ask_on(connection, &request)
    }

    fn ask_on(
        &mut self,
        mut connection: BufReader<TcpStream>,
        request: &str,
    ) -> Result<(u16, Value)> {
        connection.get_mut().write_all(request.as_bytes())?;
        let ResponseHead { status, length, is_kept, retry_after } = read_head(&mut connection)?;
        let mut body = vec![0; length];
        connection.read_exact(&mut body)?;
        self.connection = is_kept.then_some(connection);
        self.retry_after = retry_after;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    pub(crate) fn post(&mut self, path: &str, token: &str, body: &Value) -> Result<(u16, Value)> {
        self.ask("POST", path, token, body)
    }

    /// Logs in with a password; returns the status, and the device's token.
    pub(crate) fn log_in(&mut self, login: &str, password: &str) -> Result<(u16, String)> {
        let device = json!({ "login": login, "password": password, "name": "a device" });
        let (status, answer) = self.post("/v1/devices", "", &device)?;
        Ok((status, answer["token"].as_str().unwrap_or_default().to_owned()))
    }

    /// Logs in, and after a refusal because of other clients' logins waits as long as the server
    /// asks and tries again. Returns the number of refusals and the total time. Gives up after a
    /// while.
    pub(crate) fn log_in_as_told(&mut self, login: &str, password: &str) -> (usize, Duration) {
        let begun = Instant::now();
        let mut refused = 0;
        while begun.elapsed() < ANSWER_TIME_MAX {
            let (status, _) = self.log_in(login, password).unwrap();
            match (status, self.retry_after) {
                (201, _) => return (refused, begun.elapsed()),
                (429 | 503, retry_after) => {
                    thread::park_timeout(retry_after.unwrap_or(Duration::from_secs(1)));
                    refused += 1;
                }
                (status, _) => panic!("{status}"),
            }
        }
        panic!("refused {refused} times in {:.1?}", begun.elapsed());
    }
}

/// The head of an answer.
struct ResponseHead {
    status: u16,
    /// The length of the body in bytes.
    length: usize,
    /// Whether the connection stays open.
    is_kept: bool,
    retry_after: Option<Duration>,
}

fn read_head(connection: &mut BufReader<TcpStream>) -> Result<ResponseHead> {
    let mut head = ResponseHead { status: 0, length: 0, is_kept: true, retry_after: None };
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            head.status = rest.split(' ').next().unwrap_or_default().parse().unwrap_or(0);
        } else if let Some(text) = line.strip_prefix("content-length: ") {
            head.length = text.parse().unwrap_or(0);
        } else if let Some(text) = line.strip_prefix("retry-after: ") {
            head.retry_after = text.parse().ok().map(Duration::from_secs);
        } else if line == "connection: close" {
            head.is_kept = false;
        } else if line.is_empty() {
            return Ok(head);
        }
    }
}

/// A user who uses the server as intended.
pub(crate) struct HonestUser {
    client: RawHttpClient,
    pub(crate) login: String,
    pub(crate) token: String,
    counter: u16,
}

impl HonestUser {
    /// Creates an account and registers a device, from this address.
    pub(crate) fn register(target: &AttackedServer, login: &str, from: Ipv4Addr) -> Self {
        let mut client = RawHttpClient::new(from, target.address());
        let account = json!({ "login": login, "password": PASSWORD });
        let (status, answer) = client.post("/v1/accounts", "", &account).unwrap();
        assert_eq!(status, 201, "{answer}");
        let (status, token) = client.log_in(login, PASSWORD).unwrap();
        assert_eq!(status, 201);
        Self { client, login: login.to_owned(), token, counter: 0 }
    }

    /// Pushes a message, which must be stored; returns how long it took.
    pub(crate) fn push(&mut self) -> Duration {
        let begun = Instant::now();
        let (status, answer) = self.try_push(b"an honest change").unwrap();
        assert_eq!((status, &answer["stored_count"]), (200, &json!(1)), "{answer}");
        begun.elapsed()
    }

    /// Pushes a message with this content.
    pub(crate) fn try_push(&mut self, content: &[u8]) -> Result<(u16, Value)> {
        use base64::Engine;
        self.counter += 1;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now_ms = u64::try_from(now.as_millis()).unwrap();
        let timestamp = Timestamp::new(now_ms, self.counter, NodeId(7)).unwrap().to_string();
        let content = base64::prelude::BASE64_STANDARD.encode(content);
        let messages = json!({ "messages": [{ "timestamp": timestamp, "content": content }] });
        self.client.post("/v1/sync/delta", &self.token, &messages)
    }

    /// Measures how long pushes take.
    pub(crate) fn measure(&mut self) -> SortedLatencies {
        SortedLatencies::of(|| self.push())
    }

    /// Measures how long pushes take, each on a connection of its own.
    pub(crate) fn measure_connections(&mut self) -> SortedLatencies {
        SortedLatencies::of(|| {
            self.client.connection = None;
            self.push()
        })
    }

    /// Measures pushes of a device that tries again when its connection is closed or refused.
    pub(crate) fn measure_retries(&mut self) -> SortedLatencies {
        SortedLatencies::of(|| {
            let begun = Instant::now();
            loop {
                self.client.connection = None;
                match self.try_push(b"an honest change") {
                    Ok((200, _)) => return begun.elapsed(),
                    Ok((503, _)) | Err(_) => thread::yield_now(),
                    Ok(refused) => panic!("{refused:?}"),
                }
            }
        })
    }
}

/// Latencies in ascending order.
pub(crate) struct SortedLatencies(Vec<Duration>);

impl SortedLatencies {
    fn of(push: impl FnMut() -> Duration) -> Self {
        let mut all: Vec<_> = iter::repeat_with(push).take(crate::count(40, 400)).collect();
        all.sort();
        Self(all)
    }

    /// Prints the latencies of the user's pushes, and those without an attack for comparison. The
    /// longest ones must have been far from any of the attacked limits.
    #[expect(clippy::print_stdout, reason = "the figures are what a long run is for")]
    pub(crate) fn report(&self, attack: &str, quiet: &Self, target: &AttackedServer) {
        let ms = |latencies: &Self, percent: usize| {
            let Self(all) = latencies;
            all[(all.len() - 1) * percent / 100].as_secs_f64() * 1e3
        };
        println!(
            "{attack}: P50 {:.1} ms (quiet {:.1}), P99 {:.1} ms (quiet {:.1}), worst {:.1} ms, memory {} MiB",
            ms(self, 50),
            ms(quiet, 50),
            ms(self, 99),
            ms(quiet, 99),
            ms(self, 100),
            target.memory_high_mib(),
        );
        assert!(self.0.last().unwrap() < &Duration::from_secs(10), "{attack}");
    }
}

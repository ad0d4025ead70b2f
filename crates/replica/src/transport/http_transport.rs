//! Implements the transport over HTTP, with protobuf, one persistent connection, and a timeout for
//! every wait.

use std::io::{self, Read};
use std::time::Duration;

use prost::Message;
use protocol::{
    DeviceList, EnableE2eeRequest, PROTOBUF, PullResponse, PushRequest, PushResponse,
    ReconcileRequest, ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::http::header::CONTENT_TYPE;
use ureq::tls::TlsConfig;
use ureq::typestate::AgentScope;

use super::event_stream::{EventStream, KEEPALIVE_TIMEOUT};
use super::page_stream::PageStreamReader;
use super::trust::TrustedRoots;
use super::{ANSWER_BYTES_MAX, PullParams};
use crate::error::{Error, Result};
use crate::sync::blocking::{PageStream, Transport};

/// The timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for one request and its answer, whatever the size of the page.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);
/// The timeout between two reads of a stream.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

type AgentConfigBuilder = ConfigBuilder<AgentScope>;

/// A server reached over HTTP. Clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    agent: Agent,
    server: String,
    roots: TrustedRoots,
}

impl HttpTransport {
    /// Creates a transport to `server`, an address such as `http://127.0.0.1:4600`.
    pub fn new(server: &str) -> Self {
        Self::trusting(server, TrustedRoots::default())
    }

    /// Creates a transport that trusts authorities of the user's choice.
    pub fn trusting(server: &str, roots: TrustedRoots) -> Self {
        Self::with_timeout(server, roots, REQUEST_TIMEOUT)
    }

    /// Creates a transport with this timeout for each answer.
    pub fn with_timeout(server: &str, roots: TrustedRoots, timeout: Duration) -> Self {
        Self::build(server, roots, |config| config.timeout_global(Some(timeout)))
    }

    fn build(
        server: &str,
        roots: TrustedRoots,
        configure: impl FnOnce(AgentConfigBuilder) -> AgentConfigBuilder,
    ) -> Self {
        let tls = TlsConfig::builder().root_certs(roots.certificates()).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("warren/", env!("CARGO_PKG_VERSION")));
        let agent = configure(config).build().into();
        Self { agent, server: server.trim_end_matches('/').to_owned(), roots }
    }

    /// Requests `GET /v1/sync/events` on a separate connection, which stays open while the stream
    /// is in use.
    pub fn subscribe(&self, token: &str) -> Result<EventStream> {
        let http = Self::build(&self.server, self.roots.clone(), |config| {
            config
                .timeout_recv_response(Some(KEEPALIVE_TIMEOUT))
                .timeout_per_read(Some(KEEPALIVE_TIMEOUT))
        });
        let request = http.agent.get(format!("{}/v1/sync/events", http.server));
        // The header makes the server send a refusal as protobuf.
        let request = request.header("accept", PROTOBUF).header("authorization", bearer(token));
        let body = http.check_status(request.call())?.into_body();
        Ok(EventStream::new(body.into_with_config().limit(u64::MAX).reader()))
    }

    /// Sends a `GET` request and decodes the answer as `T`.
    pub fn get<T: Message + Default>(&self, path: &str, token: &str) -> Result<T> {
        let request = self.agent.get(format!("{}{path}", self.server));
        let request = request.header("accept", PROTOBUF).header("authorization", bearer(token));
        self.decode(request.call())
    }

    /// Sends a message by `POST` and decodes the answer as `T`.
    pub fn post<T: Message + Default>(
        &self,
        path: &str,
        token: Option<&str>,
        body: &impl Message,
    ) -> Result<T> {
        let request = self.agent.post(format!("{}{path}", self.server));
        let mut request = request.header("accept", PROTOBUF).content_type(PROTOBUF);
        if let Some(token) = token {
            request = request.header("authorization", bearer(token));
        }
        self.decode(request.send(body.encode_to_vec()))
    }

    /// Sends a `DELETE` request.
    pub fn delete(&self, path: &str, token: &str) -> Result<()> {
        let request = self.agent.delete(format!("{}{path}", self.server));
        let request = request.header("accept", PROTOBUF).header("authorization", bearer(token));
        read(self.check_status(request.call())?).map(drop)
    }

    /// Returns the devices of the token's account.
    pub fn devices(&self, token: &str) -> Result<DeviceList> {
        self.get("/v1/devices", token)
    }

    fn decode<T: Message + Default>(
        &self,
        response: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<T> {
        let bytes = read(self.check_status(response)?)?;
        T::decode(&bytes[..])
            .map_err(|source| Error::Unreachable(format!("invalid response: {source}")))
    }

    /// Returns the response, or an error if it is a refusal or an HTML page.
    fn check_status(
        &self,
        response: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Response<ureq::Body>> {
        let response = response.map_err(|source| unreachable(&self.server, &source))?;
        let status = response.status();
        if !status.is_success() {
            return Err(Error::from_response(status.as_u16(), &read(response)?));
        }
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Error::check_media_type(status.as_u16(), media_type)?;
        Ok(response)
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn read(response: Response<ureq::Body>) -> Result<Vec<u8>> {
    // The limit applies after decompression, because a few bytes may unpack to a great many.
    let mut body = response.into_body().into_reader().take(ANSWER_BYTES_MAX + 1);
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes)
        .map_err(|source| Error::Unreachable(format!("response interrupted: {source}")))?;
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        return Err(Error::Unreachable("response too large".into()));
    }
    Ok(bytes)
}

/// Explains why a request to `server` has no response.
fn unreachable(server: &str, source: &ureq::Error) -> Error {
    Error::Unreachable(match source {
        ureq::Error::Io(error) => match no_connection(server, error) {
            Some(reason) => reason,
            None => return tls_error(server, &error.to_string()),
        },
        ureq::Error::HostNotFound => unknown_host(server),
        ureq::Error::Timeout(_) => format!("{server} did not answer in time"),
        // A server that expects TLS answers with an alert.
        ureq::Error::Protocol(_) => format!("{server} did not answer with HTTP"),
        other => return tls_error(server, &other.to_string()),
    })
}

/// Explains an error of the network, if it is one.
fn no_connection(server: &str, error: &io::Error) -> Option<String> {
    use io::ErrorKind as K;
    Some(match error.kind() {
        K::ConnectionRefused => format!("{server} refused the connection"),
        K::ConnectionAborted | K::ConnectionReset | K::BrokenPipe | K::UnexpectedEof => {
            format!("{server} closed the connection")
        }
        K::HostUnreachable | K::NetworkUnreachable => format!("there is no route to {server}"),
        K::TimedOut => format!("{server} did not answer in time"),
        // The standard library has no kind for it.
        _ if error.to_string().starts_with("failed to lookup address") => unknown_host(server),
        _ => return None,
    })
}

fn unknown_host(server: &str) -> String {
    format!("the host name in {server} cannot be resolved")
}

/// Explains a text of rustls, which ureq passes on as an I/O error; or another error.
fn tls_error(server: &str, reason: &str) -> Error {
    if reason.contains("InvalidContentType") {
        return Error::Unreachable(format!("{server} does not use TLS"));
    }
    let Some((_, reason)) = reason.split_once("invalid peer certificate: ") else {
        return Error::Unreachable(format!("{server}: {reason}"));
    };
    let reason = match reason {
        // No trusted authority signed it, or only one of the same name.
        "UnknownIssuer" | "BadSignature" => "issued by an unknown certificate authority",
        other => other,
    };
    Error::Untrusted { reason: reason.to_owned() }
}

impl Transport for HttpTransport {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.post("/v1/devices", token, request)
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.get(&pull.path(), token)
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        let request = self.agent.get(format!("{}/v1/sync/full?cursor={cursor}", self.server));
        // A stream may take any time, as long as data keeps arriving.
        let config = request.config().timeout_global(None).timeout_per_read(Some(READ_TIMEOUT));
        let request = config.build().header("accept", protocol::PROTOBUF_SEQUENCE);
        let response = self.check_status(request.header("authorization", bearer(token)).call())?;
        Ok(Box::new(PageStreamReader::new(response.into_body().into_reader())))
    }

    fn push(&mut self, token: &str, request: &PushRequest, unsent: u64) -> Result<PushResponse> {
        self.post(&format!("/v1/sync/delta?unsent_count={unsent}"), Some(token), request)
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.post("/v1/sync/reconcile", Some(token), request)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.post("/v1/sync/e2ee", Some(token), request)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn address_of(listener: &TcpListener) -> String {
        format!("http://{}", listener.local_addr().unwrap())
    }

    #[test]
    fn a_program_that_does_not_speak_http_is_named() {
        for (answer, reason) in [
            ("", "closed the connection"),
            ("220 mail.example ESMTP\r\n", "did not answer with HTTP"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let server = address_of(&listener);
            let program = thread::spawn(move || {
                let (mut connection, _) = listener.accept().unwrap();
                // A connection that is closed before all was read is reset.
                let lines = BufReader::new(&connection).lines();
                lines.map(Result::unwrap).find(String::is_empty).unwrap();
                connection.write_all(answer.as_bytes()).unwrap();
            });
            let error = HttpTransport::new(&server).devices("token").unwrap_err().to_string();
            assert_eq!(error, format!("cannot reach the server: {server} {reason}"));
            program.join().unwrap();
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_named() {
        // The system accepts the connection, and no program reads from it.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = address_of(&listener);
        let timeout = Duration::from_millis(50);
        let http = HttpTransport::with_timeout(&server, TrustedRoots::default(), timeout);
        let error = http.devices("token").unwrap_err().to_string();
        assert_eq!(error, format!("cannot reach the server: {server} did not answer in time"));
    }
}

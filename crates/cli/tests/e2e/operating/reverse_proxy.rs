//! Runs the distribution's nginx, Caddy and HAProxy, each on a port of this machine.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

use postgres_lab::ReservedPort;

use super::{PROXIES_PAGE, code_block, program, replaced};
use crate::certificates::TestCertificates;
use crate::file_modes::{RunningCommand, wait_until};
use crate::fixture::SyncFixture;
use crate::live::{DEADLINE, lines};
use crate::processes::with_input;

/// The clients' address: no proxy has it, and the server does not trust it.
pub(super) const CLIENT: &str = "127.9.0.7";

#[derive(Clone, Copy, Debug)]
pub(super) enum ProxyKind {
    Nginx,
    Caddy,
    HaProxy,
}

impl ProxyKind {
    pub(super) const ALL: [Self; 3] = [Self::Nginx, Self::Caddy, Self::HaProxy];

    /// Returns the command that runs it as one process in the foreground.
    fn command(self, place: &SyncFixture, configuration: &str) -> Command {
        let (path, arguments) = match self {
            Self::Nginx => ("/usr/sbin/nginx", &["-e", "stderr", "-c"][..]),
            Self::Caddy => ("/usr/bin/caddy", &["run", "--adapter", "caddyfile", "--config"][..]),
            Self::HaProxy => ("/usr/sbin/haproxy", &["-db", "-f"][..]),
        };
        let mut command = program(path);
        command.args(arguments).arg(configuration);
        if let Self::Nginx = self {
            command.args(["-p", &place.at("")]);
        }
        // Caddy writes its files into this directory.
        command.env("HOME", place.at("")).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Returns the page's configuration for a server at `target`, with the parts that the page
    /// leaves to the distribution.
    fn configuration(self, certificates: &TestCertificates, target: &str, port: u16) -> String {
        let TestCertificates { place, certificate, key, .. } = certificates;
        match self {
            Self::Nginx => nginx_around(&replaced(
                code_block(PROXIES_PAGE, "## nginx"),
                &[
                    ("listen 443", &format!("listen 127.0.0.1:{port}")),
                    ("127.0.0.1:4600", target),
                    ("/etc/ssl/warren/fullchain.pem", certificate),
                    ("/etc/ssl/warren/privkey.pem", key),
                ],
            )),
            Self::Caddy => {
                // A TLS client sends no host name that is an address, so the site accepts any
                // host.
                let site = format!("https://:{port} {{\n bind 127.0.0.1\n tls {certificate} {key}");
                let page = code_block(PROXIES_PAGE, "## Caddy");
                let page =
                    replaced(page, &[("warren.example {", &site), ("127.0.0.1:4600", target)]);
                format!("{{\n admin off\n auto_https disable_redirects\n}}\n{page}")
            }
            Self::HaProxy => {
                let both = place.at("haproxy.pem");
                let read = |path| fs::read_to_string(path).unwrap();
                fs::write(&both, read(certificate) + &read(key)).unwrap();
                replaced(
                    code_block(PROXIES_PAGE, "## HAProxy"),
                    &[
                        ("bind :443", &format!("bind 127.0.0.1:{port}")),
                        ("127.0.0.1:4600", target),
                        ("/etc/haproxy/warren.pem", &both),
                    ],
                )
            }
        }
    }
}

/// Surrounds a site with the contents of `/etc/nginx/nginx.conf`, with all files in one folder.
pub(super) fn nginx_around(site: &str) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr warn; events {{}}
         http {{
             access_log off; client_body_temp_path body; proxy_temp_path proxy;
             fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
             {site}
         }}"
    )
}

/// A running proxy, which is killed on drop.
pub(super) struct ReverseProxy {
    program: RunningCommand,
    port: ReservedPort,
    /// The path of the log file.
    log: String,
}

impl ReverseProxy {
    /// Starts a proxy with the page's configuration, in front of a server at an address such as
    /// `127.0.0.1:4600`. The page must contain the replaced texts.
    pub(super) fn as_page(
        kind: ProxyKind,
        certificates: &TestCertificates,
        target: &str,
        replacements: &[(&str, &str)],
    ) -> Self {
        Self::start(kind, certificates.place, |port| {
            replaced(&kind.configuration(certificates, target, port), replacements)
        })
    }

    /// Starts a proxy with a configuration for a port. Returns once it accepts connections.
    pub(super) fn start(
        kind: ProxyKind,
        place: &SyncFixture,
        configuration: impl Fn(u16) -> String,
    ) -> Self {
        let (file, log) = (place.at(&format!("{kind:?}.conf")), place.at(&format!("{kind:?}.log")));
        let port = ReservedPort::new().unwrap();
        fs::write(&file, configuration(port.number())).unwrap();
        let mut command = kind.command(place, &file);
        let program = RunningCommand::of(command.stderr(File::create(&log).unwrap()));
        let mut proxy = Self { program, port, log };
        wait_until("a proxy that listens", || {
            let ended = proxy.program.0.try_wait().unwrap();
            assert!(ended.is_none(), "{kind:?}: {}", proxy.log());
            TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port.number())).is_ok()
        });
        proxy
    }

    /// Returns the proxy's address, `127.0.0.1:…`.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// Returns the proxy's log.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the command for a TLS connection of a client at [`CLIENT`], on the program's
    /// standard input and output.
    fn connect(&self, certificates: &TestCertificates) -> Command {
        let mut command = program("/usr/bin/openssl");
        command.args(["s_client", "-quiet", "-verify_quiet", "-verify_return_error"]);
        command.args(["-CAfile", &certificates.authority, "-verify_ip", "127.0.0.1"]);
        command.args(["-bind", &format!("{CLIENT}:0"), "-connect", &self.address()]);
        command
    }

    /// Returns the answer to one request, head and body.
    pub(super) fn ask(&self, certificates: &TestCertificates, request: &str) -> String {
        with_input(&mut self.connect(certificates), request).stdout
    }

    /// Sends one request, and returns its answer line by line.
    pub(super) fn listen(&self, certificates: &TestCertificates, request: &str) -> ResponseStream {
        let mut command = self.connect(certificates);
        let mut client = RunningCommand::of(command.stdin(Stdio::piped()).stderr(Stdio::null()));
        client.0.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        let lines = lines(client.0.stdout.take().unwrap());
        ResponseStream { lines, _client: client }
    }
}

/// An answer that continues until this value is dropped.
pub(super) struct ResponseStream {
    lines: Receiver<String>,
    _client: RunningCommand,
}

impl ResponseStream {
    /// Waits for a line that begins with this text.
    #[track_caller]
    pub(super) fn until(&self, start: &str) {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.starts_with(start)) {
            let line = self.lines.recv_timeout(DEADLINE);
            seen.push(line.unwrap_or_else(|error| panic!("{error} after {seen:?}")));
        }
    }
}

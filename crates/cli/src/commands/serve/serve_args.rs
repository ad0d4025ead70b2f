//! Defines the settings of `warren serve` as arguments.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use accounts::{DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX};
use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};
use server::{AllowedOrigin, HostName, TrustedProxy};
use tracing_subscriber::filter::Targets;

use super::{actual_gateway, log, mail_listener};
use crate::args::postgres_args::PostgresArgs;

/// The smallest value of `--request-body-bytes-max`: a request that names a device fits.
const BODY_BYTES_MAX_LEAST: u64 = 1_000;

/// The largest timeout, one day: anything longer would not be a limit.
const REQUEST_TIMEOUT_SECONDS_MAX: u64 = 86_400;

// These are the headings in `--help`.
const ACCESS: &str = "Access";
const LIMITS: &str = "Limits";
const NETWORK: &str = "Network";
const STORAGE: &str = "Storage";

/// Run the sync server.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren serve --data ./data\n  warren serve --listen 0.0.0.0:4600 \
                        --data /srv/warren --admin-token-file token.txt\n  warren serve \
                        --account-messages-max 1000000 --account-devices-max 20\n  \
                        warren serve --data /srv/warren --postgres-file url.txt\n  \
                        warren serve --allow-origin https://app.example\n  \
                        warren serve --actual-budget 127.0.0.1:5006 --actual-budget-web package/build\n  \
                        warren serve --lmtp 127.0.0.1:2400\n  \
                        warren serve --config /etc/warren.toml\n\n\
                        On untrusted networks, use --tls-cert or a reverse proxy with TLS."
)]
pub(crate) struct ServeArgs {
    /// IP address and port to listen on. Port 0 picks a free port.
    #[arg(long, default_value = "127.0.0.1:4600", value_name = "ADDRESS", help_heading = NETWORK)]
    pub(crate) listen: SocketAddr,
    /// Serve HTTPS with the certificate chain in this PEM file. Reloaded when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = NETWORK)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = NETWORK)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Data directory for accounts and vaults. Created if missing.
    #[arg(long, default_value = "./data", value_name = "DIR", help_heading = STORAGE)]
    pub(crate) data: PathBuf,
    #[command(flatten, next_help_heading = STORAGE)]
    pub(crate) postgres: PostgresArgs,
    /// Let anyone create an account.
    #[arg(long, help_heading = ACCESS)]
    pub(crate) open_registration: bool,
    /// Enable the admin API and the admin page /admin. Both require the token on the first line of
    /// this file (at least 16 characters). The token also allows creating accounts.
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Allow pages of this origin to call the API (CORS); `*` allows any origin. May be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN", help_heading = NETWORK)]
    pub(crate) origins: Vec<AllowedOrigin>,
    /// Accept only requests for this host name (and for IP addresses). May be repeated [default:
    /// any name; on a loopback address: localhost]
    #[arg(long = "allow-host", value_name = "NAME", help_heading = NETWORK)]
    pub(crate) hosts: Vec<HostName>,
    /// Trust X-Forwarded-For from a proxy at this address or network, such as 10.0.0.0/8. May be
    /// repeated.
    #[arg(long = "trusted-proxy", value_name = "CIDR", help_heading = NETWORK)]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,
    /// Maximum number of messages per request or response.
    #[arg(long, default_value_t = protocol::MESSAGES_COUNT_MAX, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..), help_heading = LIMITS)]
    pub(crate) request_messages_max: usize,
    /// Maximum size of a request body in bytes.
    #[arg(long, default_value_t = protocol::BODY_BYTES_MAX, value_name = "BYTES")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(BODY_BYTES_MAX_LEAST..))]
    #[arg(help_heading = LIMITS)]
    pub(crate) request_body_bytes_max: usize,
    /// Memory for all request and response bodies together, in MiB. One account may use an eighth
    /// of it, one client address half [default: 512, or four times the largest request]
    #[arg(long, value_name = "MIB", help_heading = LIMITS)]
    pub(crate) body_memory_mib: Option<usize>,
    /// Time limit for receiving the headers of a request, and again for a short body. Longer bodies
    /// get one more second per 16 KiB.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    #[arg(value_parser = value_parser!(u64).range(1..=REQUEST_TIMEOUT_SECONDS_MAX))]
    #[arg(help_heading = LIMITS)]
    pub(crate) request_timeout_seconds: u64,
    /// Maximum number of open connections. Each device that listens for changes needs one [default:
    /// 10000, or fewer if the open-file limit is low]
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..), help_heading = LIMITS)]
    pub(crate) connections_max: Option<usize>,
    /// Check every page of each vault for damage once in this many days, while the vault is idle. 0
    /// checks all pages in every maintenance run.
    #[arg(long, default_value_t = 30, value_name = "DAYS", help_heading = STORAGE)]
    pub(crate) scrub_days: u32,
    #[command(flatten, next_help_heading = LIMITS)]
    pub(crate) limits: DefaultLimitArgs,
    /// Log level (error, warn, info, debug, trace), or a filter by module, such as
    /// warn,server=debug.
    #[arg(long, default_value = "info", value_name = "FILTER", value_parser = log::parse_filter)]
    #[arg(help_heading = "Log")]
    pub(crate) log: Targets,
    #[command(flatten)]
    pub(crate) mail: mail_listener::MailListenerArgs,
    #[command(flatten)]
    pub(crate) actual_budget: actual_gateway::ActualGatewayArgs,
}

impl ServeArgs {
    pub(crate) fn files_with_secrets(&self) -> impl Iterator<Item = &Path> {
        let files = [self.admin_token_file.as_deref(), self.tls_key.as_deref()];
        files.into_iter().flatten().chain(self.postgres.file())
    }
}

/// Default quota of an account; `warren account quota` overrides it.
#[derive(Args)]
pub(crate) struct DefaultLimitArgs {
    /// Maximum number of messages per account [default: no limit]
    #[arg(long = "account-messages-max", value_name = "COUNT")]
    pub(crate) messages: Option<u64>,
    /// Maximum size of an account's messages in bytes [default: no limit]
    #[arg(long = "account-bytes-max", value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    /// Maximum number of devices per account, up to 900.
    #[arg(long = "account-devices-max", value_name = "COUNT")]
    #[arg(default_value_t = DEVICES_COUNT_DEFAULT)]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(DEVICES_COUNT_MAX)))]
    pub(crate) devices: u32,
}

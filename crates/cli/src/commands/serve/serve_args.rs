//! The settings of `warren serve`, as arguments.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use accounts::{DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX};
use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};
use server::{AllowedOrigin, HostName, TrustedProxy};
use tracing_subscriber::filter::Targets;

use super::{actual_gateway, log};
use crate::args::postgres_args::PostgresArgs;

/// Of `--body-bytes-max`: a request that names a device has room.
const BODY_BYTES_MAX_LEAST: u64 = 1_000;

/// A day: more would be no limit.
const REQUEST_TIMEOUT_SECONDS_MAX: u64 = 86_400;

/// Serve accounts and their vaults over HTTP.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren serve --data ./data\n  warren serve --listen 0.0.0.0:4600 \
                        --data /srv/warren --admin-token-file token.txt\n  warren serve \
                        --account-messages-max 1000000 --account-devices-max 20\n  \
                        warren serve --data /srv/warren --postgres-file url.txt\n  \
                        warren serve --allow-origin https://app.example\n  \
                        warren serve --actual 127.0.0.1:5006 --actual-web package/build\n  \
                        warren serve --config /etc/warren.toml\n\n\
                        Where the network is not yours, speak TLS (--tls-cert), or put a proxy in front."
)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:4600", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Speak TLS with the certificate in this PEM file, followed by those that lead to one that
    /// clients know; read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The directory of accounts and vaults; made if it is not there.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) postgres: PostgresArgs,
    /// Let anybody make an account.
    #[arg(long)]
    pub(crate) open_registration: bool,
    /// Who sends the token on this file's first line may make accounts, and ask `/v1/admin/`, as
    /// the page `/admin` does. It has 16 characters or more.
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Let pages of this origin call the API, or of any origin (*); may be given more than once.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<AllowedOrigin>,
    /// Answer to this name, and to no other but addresses and the other names that are given; may
    /// be given more than once [default: any name; on a loopback address: localhost]
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<HostName>,
    /// Believe the X-Forwarded-For of a proxy at this address, or in this network (10.0.0.0/8), so
    /// that its clients are told apart; may be given more than once.
    #[arg(long = "trusted-proxy", value_name = "CIDR")]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,
    /// Messages in one request or answer at most.
    #[arg(long, default_value_t = protocol::MESSAGES_COUNT_MAX, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) messages_max: usize,
    /// Bytes of one request's body at most.
    #[arg(long, default_value_t = protocol::BODY_BYTES_MAX, value_name = "BYTES")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(BODY_BYTES_MAX_LEAST..))]
    pub(crate) body_bytes_max: usize,
    /// MiB of all requests' bodies and answers in memory at one time; an account may have an eighth
    /// of them, and an address half [default: 512, or four times the largest request]
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_mib: Option<usize>,
    /// Seconds for a request's head to arrive, and then for a short body; a long one has a second
    /// more for each 16 KiB.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    #[arg(value_parser = value_parser!(u64).range(1..=REQUEST_TIMEOUT_SECONDS_MAX))]
    pub(crate) request_timeout: u64,
    /// Connections at one time at most; a device that listens holds one [default: 10000, or as
    /// many as the system's limit on open files leaves room for]
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) connections_max: Option<usize>,
    /// Days in which all pages of a vault are read once, a part at a time when it is idle, to see
    /// whether they are damaged; 0: all of them each time.
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    pub(crate) scrub_days: u32,
    #[command(flatten)]
    pub(crate) limits: DefaultLimitArgs,
    /// What to log: error, warn, info, debug, trace; or by module, as in `warn,server=debug`.
    #[arg(long, default_value = "info", value_name = "FILTER", value_parser = log::parse_filter)]
    pub(crate) log: Targets,
    #[command(flatten)]
    pub(crate) actual: actual_gateway::ActualGatewayArgs,
}

impl ServeArgs {
    pub(crate) fn files_with_secrets(&self) -> impl Iterator<Item = &Path> {
        let files = [self.admin_token_file.as_deref(), self.tls_key.as_deref()];
        files.into_iter().flatten().chain(self.postgres.file())
    }
}

/// What an account may hold, unless `warren account limit` says otherwise for it.
#[derive(Args)]
pub(crate) struct DefaultLimitArgs {
    /// Messages of one account at most [default: no limit]
    #[arg(long = "account-messages-max", value_name = "COUNT")]
    pub(crate) messages: Option<u64>,
    /// Bytes of one account's messages at most [default: no limit]
    #[arg(long = "account-bytes-max", value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    /// Devices of one account at most, up to 900.
    #[arg(long = "account-devices-max", value_name = "COUNT")]
    #[arg(default_value_t = DEVICES_COUNT_DEFAULT)]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(DEVICES_COUNT_MAX)))]
    pub(crate) devices: u32,
}

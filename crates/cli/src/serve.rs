//! `warren serve`: the server, until it is told to stop.

mod actual_gateway;
pub(crate) mod file_descriptors;
mod log;
mod permissions;
pub(crate) mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use accounts::{DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX};
use anyhow::{Context, ensure};
use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};
use serde_json::json;
use server::{AdminToken, AllowedOrigin, Config, HostName, SyncServer, TlsFiles, TrustedProxy};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::Targets;

use crate::output::Printer;
use crate::password::first_line;
use crate::postgres_args::PostgresArgs;
pub(crate) use settings::LayeredServeArgs;

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
    listen: SocketAddr,
    /// Speak TLS with the certificate in this PEM file, followed by those that lead to one that
    /// clients know; read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The directory of accounts and vaults; made if it is not there.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    postgres: PostgresArgs,
    /// Let anybody make an account.
    #[arg(long)]
    open_registration: bool,
    /// Who sends the token on this file's first line may make accounts, and ask `/v1/admin/`, as the
    /// page `/admin` does. It has 16 characters or more.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Let pages of this origin call the API, or of any origin (*); may be given more than once.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<AllowedOrigin>,
    /// Answer to this name, and to no other but addresses and the other names that are given; may
    /// be given more than once [default: any name; on a loopback address: localhost]
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<HostName>,
    /// Believe the X-Forwarded-For of a proxy at this address, or in this network (10.0.0.0/8), so
    /// that its clients are told apart; may be given more than once.
    #[arg(long = "trusted-proxy", value_name = "CIDR")]
    trusted_proxies: Vec<TrustedProxy>,
    /// Messages in one request or answer at most.
    #[arg(long, default_value_t = protocol::MESSAGES_COUNT_MAX, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    messages_max: usize,
    /// Bytes of one request's body at most.
    #[arg(long, default_value_t = protocol::BODY_BYTES_MAX, value_name = "BYTES")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(BODY_BYTES_MAX_LEAST..))]
    body_bytes_max: usize,
    /// MiB of all requests' bodies and answers in memory at one time; an account may have an eighth
    /// of them, and an address half [default: 512, or four times the largest request]
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<usize>,
    /// Seconds for a request's head to arrive, and then for a short body; a long one has a second
    /// more for each 16 KiB.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    #[arg(value_parser = value_parser!(u64).range(1..=REQUEST_TIMEOUT_SECONDS_MAX))]
    request_timeout: u64,
    /// Connections at one time at most; a device that listens holds one [default: 10000, or as
    /// many as the system's limit on open files leaves room for]
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    connections_max: Option<usize>,
    /// Days in which all pages of a vault are read once, a part at a time when it is idle, to see
    /// whether they are damaged; 0: all of them each time.
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    scrub_days: u32,
    #[command(flatten)]
    limits: DefaultLimitArgs,
    /// What to log: error, warn, info, debug, trace; or by module, as in `warn,server=debug`.
    #[arg(long, default_value = "info", value_name = "FILTER", value_parser = log::parse_filter)]
    log: Targets,
    #[command(flatten)]
    actual: actual_gateway::ActualGatewayArgs,
}

impl ServeArgs {
    fn files_with_secrets(&self) -> impl Iterator<Item = &Path> {
        let files = [self.admin_token_file.as_deref(), self.tls_key.as_deref()];
        files.into_iter().flatten().chain(self.postgres.file())
    }
}

/// What an account may hold, unless `warren account limit` says otherwise for it.
#[derive(Args)]
struct DefaultLimitArgs {
    /// Messages of one account at most [default: no limit]
    #[arg(long = "account-messages-max", value_name = "COUNT")]
    messages: Option<u64>,
    /// Bytes of one account's messages at most [default: no limit]
    #[arg(long = "account-bytes-max", value_name = "BYTES")]
    bytes: Option<u64>,
    /// Devices of one account at most, up to 900.
    #[arg(long = "account-devices-max", value_name = "COUNT")]
    #[arg(default_value_t = DEVICES_COUNT_DEFAULT)]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(DEVICES_COUNT_MAX)))]
    devices: u32,
}

pub(crate) fn run(layered: &LayeredServeArgs, output: Printer) -> anyhow::Result<()> {
    if layered.prints_config() {
        return layered.print_config(output);
    }
    let arguments = layered.resolve()?;
    log::start(arguments.log.clone(), output);
    settings::warn_of_unknown_variables();
    permissions::restrict_to_owner(&arguments.data);
    for file in arguments.files_with_secrets() {
        permissions::warn_of_readers(file);
    }
    let data = arguments.data.display().to_string();
    let (config, actual) = build_config(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut server = SyncServer::bind(config).await?;
        let address = format!("{}://{}", server.scheme(), server.address());
        let actual = actual.add_to(&mut server)?;
        output.line(format_args!("Warren serves {address} with {data}; Ctrl-C stops it."));
        if let Some(actual) = &actual {
            output.line(format_args!("Actual Budget's apps sync with {actual}."));
        }
        output.json(&json!({"address": address, "actual": actual, "data": data}))?;
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing what was begun");
        };
        Ok(server.run(shutdown).await?)
    })
}

fn build_config(
    arguments: ServeArgs,
) -> anyhow::Result<(Config, actual_gateway::ActualGatewayArgs)> {
    let defaults = Config::default();
    let connections_max = file_descriptors::connections_that_fit(
        arguments.connections_max,
        defaults.connections_max,
        defaults.databases.open_count_max,
    )?;
    let DefaultLimitArgs { messages, bytes, devices } = arguments.limits;
    let scrub_time = Duration::from_hours(24 * u64::from(arguments.scrub_days));
    let largest = arguments.body_bytes_max.max(arguments.actual.largest_request());
    let memory_bytes_max =
        memory_bytes_max(arguments.memory_mib, defaults.memory_bytes_max, largest)?;
    let admin_token = arguments.admin_token_file.as_deref().map(admin_token).transpose()?;
    let config = Config {
        listen: arguments.listen,
        tls: arguments
            .tls_cert
            .zip(arguments.tls_key)
            .map(|(certificates, key)| TlsFiles { certificates, key }),
        data: arguments.data,
        postgres: arguments.postgres.url()?,
        registration_open: arguments.open_registration,
        admin_token,
        origins: arguments.origins,
        hosts: arguments.hosts,
        trusted_proxies: arguments.trusted_proxies,
        site: web_assets::SITE,
        messages_count_max: arguments.messages_max,
        body_bytes_max: arguments.body_bytes_max,
        request_timeout: Duration::from_secs(arguments.request_timeout),
        memory_bytes_max,
        connections_max,
        limits: server::DefaultAccountLimits {
            messages_max: messages.unwrap_or(u64::MAX),
            bytes_max: bytes.unwrap_or(u64::MAX),
            devices_max: devices,
        },
        databases: engine::EngineLimits { scrub_time, ..defaults.databases },
        repair_gateway_state: ::actual::repair_gateway_state,
        ..defaults
    };
    Ok((config, arguments.actual))
}

fn admin_token(file: &Path) -> anyhow::Result<AdminToken> {
    AdminToken::parse(&first_line(file)?).with_context(|| file.display().to_string())
}

/// Bytes of bodies and answers in memory: what was asked for, which the largest request must fit
/// into four times, and so twice into what one address has.
fn memory_bytes_max(
    asked_mib: Option<usize>,
    default: usize,
    largest: usize,
) -> anyhow::Result<usize> {
    let least = largest.saturating_mul(4);
    let Some(mib) = asked_mib else { return Ok(default.max(least)) };
    let bytes = mib.saturating_mul(1 << 20);
    let least_mib = least.div_ceil(1 << 20);
    ensure!(
        bytes >= least,
        "--memory-mib {mib} is too little for requests of {largest} bytes: take {least_mib}, or \
         lower --body-bytes-max and --actual-sync-bytes-max"
    );
    Ok(bytes)
}

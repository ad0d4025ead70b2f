//! `warren serve`: the server, until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use server::{AdminToken, Config, Server};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::output::Output;
use crate::password::first_line;
use crate::postgres::Database;

/// Serve accounts and their vaults over HTTP.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren serve --data ./data\n  warren serve --listen 0.0.0.0:4600 \
                        --data /srv/warren --admin-token-file token.txt\n  \
                        warren serve --data /srv/warren --postgres-file url.txt\n\n\
                        Put a TLS-terminating proxy in front where the network is not yours."
)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:4600", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The directory of accounts and vaults; made if it is not there.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    postgres: Database,
    /// Let anybody make an account.
    #[arg(long)]
    open_registration: bool,
    /// Who sends the token on this file's first line may make accounts.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Messages in one request or answer at most.
    #[arg(long, default_value_t = protocol::MESSAGES_COUNT_MAX, value_name = "COUNT")]
    messages_max: usize,
    /// Bytes of one request's body at most.
    #[arg(long, default_value_t = protocol::BODY_BYTES_MAX, value_name = "BYTES")]
    body_bytes_max: usize,
    /// Seconds for a request's head to arrive, and then its body.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    request_timeout: u64,
    /// Connections at one time at most.
    #[arg(long, default_value_t = 1_024, value_name = "COUNT")]
    connections_max: usize,
    /// What to log: error, warn, info, debug, trace, or a filter by module.
    #[arg(long, default_value = "info", value_name = "FILTER")]
    log: String,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<()> {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(&arguments.log)?)
        .with_writer(std::io::stderr);
    if output.json {
        log.json().init();
    } else {
        log.init();
    }
    let data = arguments.data.display().to_string();
    let config = config(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let server = Server::bind(config).await?;
        let address = format!("http://{}", server.address());
        output.line(format_args!("Warren serves {address} with {data}; Ctrl-C stops it."));
        output.value(&json!({"address": address, "data": data}))?;
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

fn config(arguments: Arguments) -> anyhow::Result<Config> {
    let admin_token = arguments.admin_token_file.as_deref().map(first_line).transpose()?;
    Ok(Config {
        listen: arguments.listen,
        data: arguments.data,
        postgres: arguments.postgres.url()?,
        registration_open: arguments.open_registration,
        admin_token: admin_token.map(AdminToken::new),
        messages_count_max: arguments.messages_max,
        body_bytes_max: arguments.body_bytes_max,
        request_timeout: Duration::from_secs(arguments.request_timeout),
        connections_max: arguments.connections_max,
        ..Config::default()
    })
}

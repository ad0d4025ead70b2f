//! Implements `warren serve`: runs the server until a signal stops it.

mod actual_gateway;
pub(crate) mod file_descriptors;
mod log;
mod mail_listener;
mod permissions;
mod serve_args;
pub(crate) mod serve_output;
pub(crate) mod settings;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use protocol::ErrorCode;
use server::{AdminToken, Config, SyncServer, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};

use self::serve_args::{DefaultLimitArgs, ServeArgs};
use self::serve_output::{ServeOutput, ServerStart};
pub(crate) use self::settings::LayeredServeArgs;
use crate::args::password::first_line;
use crate::output::{CommandError, Printer};

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
    let data = arguments.data.clone();
    let (config, actual, mail) = build_config(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut server = SyncServer::bind(config).await?;
        let address = format!("{}://{}", server.scheme(), server.address());
        let actual_budget_address = actual.add_to(&mut server)?;
        let mail = mail.bind(&server, &data).await?;
        let lmtp_address = mail.as_ref().map(|mail| mail.address().to_string());
        let data_dir = data.display().to_string();
        output.line(format_args!(
            "Warren is running at {address} (data directory: {data_dir}). Press Ctrl-C to stop."
        ));
        if let Some(actual) = &actual_budget_address {
            output.line(format_args!("Actual Budget apps can sync with {actual}."));
        }
        if let Some(lmtp) = &lmtp_address {
            output.line(format_args!("Mail is received by LMTP at {lmtp}."));
        }
        let start = ServerStart { address, actual_budget_address, lmtp_address, data_dir };
        output.json(&ServeOutput::Start(start))?;
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing open requests");
        };
        // Mail ends first: the server closes the databases when it ends.
        let shutdown = async {
            match mail {
                Some(mail) => mail.run(shutdown).await,
                None => shutdown.await,
            }
        };
        Ok(server.run(shutdown).await?)
    })
}

fn build_config(
    arguments: ServeArgs,
) -> anyhow::Result<(Config, actual_gateway::ActualGatewayArgs, mail_listener::MailListenerArgs)> {
    let defaults = Config::default();
    let connections_max = file_descriptors::connections_that_fit(
        arguments.connections_max,
        defaults.connections_max,
        defaults.databases.open_count_max,
        arguments.mail.connections_max(),
    )?;
    let DefaultLimitArgs { messages, bytes, devices } = arguments.limits;
    let scrub_time = Duration::from_hours(24 * u64::from(arguments.scrub_days));
    let largest = arguments.request_body_bytes_max.max(arguments.actual_budget.largest_request());
    let memory_bytes_max =
        memory_bytes_max(arguments.body_memory_mib, defaults.memory_bytes_max, largest)?;
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
        messages_count_max: arguments.request_messages_max,
        body_bytes_max: arguments.request_body_bytes_max,
        request_timeout: Duration::from_secs(arguments.request_timeout_seconds),
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
    Ok((config, arguments.actual_budget, arguments.mail))
}

fn admin_token(file: &Path) -> anyhow::Result<AdminToken> {
    AdminToken::parse(&first_line(file)?).with_context(|| file.display().to_string())
}

/// Returns the memory limit of bodies and responses in bytes. The largest request must fit four
/// times, and so twice into the share of one address.
fn memory_bytes_max(
    asked_mib: Option<usize>,
    default: usize,
    largest: usize,
) -> anyhow::Result<usize> {
    let least = largest.saturating_mul(4);
    let Some(mib) = asked_mib else { return Ok(default.max(least)) };
    let bytes = mib.saturating_mul(1 << 20);
    let least_mib = least.div_ceil(1 << 20);
    ensure!(bytes >= least, too_little_memory(mib, largest, least_mib));
    Ok(bytes)
}

fn too_little_memory(mib: usize, largest: usize, least_mib: usize) -> CommandError {
    let message = format!("--body-memory-mib {mib} is too small for requests of {largest} bytes");
    CommandError::new(ErrorCode::InvalidSettings, message).with_hint(format!(
        "pass at least {least_mib}, or lower --request-body-bytes-max and \
         --actual-budget-sync-bytes-max"
    ))
}

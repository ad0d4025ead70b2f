//! Defines the options of `warren serve` for mail, and runs the mail server next to the sync server.

use std::net::SocketAddr;

use anyhow::ensure;
use clap::Args;
use mail_server::{MailOverview, MailServer, MailServerConfig};
use server::{MailTotals, SyncServer};

/// The maximum length of a host name (RFC 1035).
const HOST_NAME_BYTES_MAX: usize = 253;

/// Options for receiving mail.
#[derive(Args)]
#[command(next_help_heading = "Mail")]
pub(crate) struct MailListenerArgs {
    /// Receive mail by LMTP at this address, such as 127.0.0.1:2400, from a mail transfer agent
    /// such as Postfix. Any program that can connect can deliver mail, so use a loopback address.
    #[arg(long, value_name = "ADDRESS")]
    lmtp: Option<SocketAddr>,
    /// Host name of the server in LMTP replies and in the header field Received.
    #[arg(long, default_value = "localhost", value_name = "NAME", value_parser = parse_host_name)]
    mail_host_name: String,
    /// Maximum size of an account's mail in bytes, as it is stored; `warren account quota` overrides
    /// it. Further mail is refused for now [default: no limit]
    #[arg(long, value_name = "BYTES")]
    account_mail_bytes_max: Option<u64>,
}

/// Checks a host name, which becomes a part of replies and of a header field.
fn parse_host_name(text: &str) -> anyhow::Result<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_valid = (1..=HOST_NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_allowed);
    ensure!(is_valid, "expected a host name, such as mail.example.org");
    Ok(text.to_owned())
}

impl MailListenerArgs {
    /// Returns the number of connections that the mail server may have open.
    pub(crate) fn connections_max(&self) -> usize {
        self.lmtp.map_or(0, |_| mail_server::CONNECTIONS_COUNT_MAX)
    }

    /// Binds the address for mail if there is one.
    pub(crate) async fn bind(
        self,
        server: &SyncServer,
        data: &std::path::Path,
    ) -> anyhow::Result<Option<MailServer>> {
        let Some(address) = self.lmtp else { return Ok(None) };
        let services = server.services();
        let config = MailServerConfig {
            listen: address,
            server_name: self.mail_host_name,
            mail_bytes_max: self.account_mail_bytes_max.unwrap_or(u64::MAX),
        };
        let bound =
            MailServer::bind(services.databases(), services.accounts().clone(), data, config)
                .await?;
        let overview = bound.overview_reader();
        server.show_mail(Box::new(move || {
            overview.read().map(to_totals).map_err(|error| error.to_string())
        }));
        if !bound.address().ip().is_loopback() {
            tracing::warn!(
                "everyone who can connect to {} can deliver mail: use a loopback address, or \
                 restrict access to it",
                bound.address()
            );
        }
        Ok(Some(bound))
    }
}

/// Converts the overview for the operator's calls.
fn to_totals(overview: MailOverview) -> MailTotals {
    let MailOverview { spool, deliveries_count, refused_count, connections_count } = overview;
    MailTotals {
        waiting_count: spool.waiting.count,
        waiting_bytes: spool.waiting.bytes,
        younger_counts: spool.younger_counts,
        oldest_ms: spool.waiting.oldest_ms(),
        set_aside_count: spool.set_aside.count,
        filed_count: spool.filed_count,
        delivered_count: deliveries_count,
        refused_count,
        connections_count,
    }
}

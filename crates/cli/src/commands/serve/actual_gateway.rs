//! Defines the options of `warren serve` for Actual Budget's apps, and adds their gateway to the
//! server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use accounts::Login;
use actual::{GatewaySettings, IDLE_MAX};
use anyhow::{Context, bail, ensure};
use clap::Args;
use protocol::ErrorCode;
use server::{Gateway, GatewayMount, SyncServer};

use crate::output::CommandError;

/// The path of the gateway on the server's own listener.
const PATH: &str = "/actual";

/// Options for the apps of Actual Budget.
#[derive(Args)]
#[command(next_help_heading = "Actual Budget")]
pub(crate) struct ActualGatewayArgs {
    /// Serve Actual Budget apps at this address, such as 127.0.0.1:5006. With the value /actual,
    /// serve them at that path of this server instead.
    #[arg(long = "actual-budget", value_name = "ADDRESS")]
    address: Option<GatewayAddress>,
    /// Also serve the Actual web app from this directory: `build` of the npm package
    /// @actual-app/web. Requires an address instead of the path /actual.
    #[arg(long = "actual-budget-web", value_name = "DIR", requires = "address")]
    web: Option<PathBuf>,
    /// Account that stores the budgets. The apps ask only for its password.
    #[arg(long = "actual-budget-login", default_value = "actual", value_name = "LOGIN")]
    login: String,
    /// Let the first app that connects set the password. Otherwise create the account with `warren
    /// account add actual`.
    #[arg(long = "actual-budget-open-registration", requires = "address")]
    is_registration_open: bool,
    /// Accept the account's password from a trusted proxy, in the header X-Actual-Password.
    /// Requires --trusted-proxy.
    #[arg(long = "actual-budget-header-login", requires_all = ["address", "trusted_proxies"])]
    has_header_login: bool,
    /// Maximum size of a budget file in bytes.
    #[arg(long = "actual-budget-upload-bytes-max", value_name = "BYTES")]
    #[arg(default_value_t = GatewaySettings::UPLOAD_BYTES_MAX)]
    upload_bytes_max: u64,
    /// Maximum size of a sync request in bytes.
    #[arg(long = "actual-budget-sync-bytes-max", default_value_t = GatewaySettings::SYNC_BYTES_MAX)]
    #[arg(value_name = "BYTES")]
    sync_bytes_max: usize,
}

/// The address or path at which the apps connect.
#[derive(Clone)]
struct GatewayAddress(GatewayMount);

impl FromStr for GatewayAddress {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == PATH {
            return Ok(Self(GatewayMount::Path(PATH)));
        }
        let address: Result<SocketAddr, _> = text.parse();
        let Ok(address) = address else {
            bail!("expected an address with a port (127.0.0.1:5006), or the path {PATH}")
        };
        Ok(Self(GatewayMount::Listener(address)))
    }
}

impl ActualGatewayArgs {
    /// Returns the size of the largest request that is in memory as a whole.
    pub(crate) fn largest_request(&self) -> usize {
        self.address.as_ref().map_or(0, |_| self.sync_bytes_max)
    }

    /// Adds the gateway if it is enabled, and returns the address that users enter in the apps.
    pub(crate) fn add_to(self, server: &mut SyncServer) -> anyhow::Result<Option<String>> {
        let Some(GatewayAddress(place)) = self.address else { return Ok(None) };
        if let Some(web) = &self.web {
            let is_listener = matches!(place, GatewayMount::Listener(_));
            let message = "the web app needs its own address, not a path";
            ensure!(is_listener, CommandError::new(ErrorCode::InvalidSettings, message));
            let index = web.join("index.html");
            let is_there = index.is_file();
            let missing = || {
                CommandError::new(
                    ErrorCode::FileNotFound,
                    format!("{} is missing", index.display()),
                )
                .with_hint("set --actual-budget-web to the directory of the web app")
            };
            ensure!(is_there, missing());
        }
        let settings = GatewaySettings {
            login: Login::parse(&self.login).context("--actual-budget-login")?,
            has_header_login: self.has_header_login,
            data: web_assets::ACTUAL_DATA,
            web: self.web,
            is_registration_open: self.is_registration_open,
            upload_bytes_max: self.upload_bytes_max,
            sync_bytes_max: self.sync_bytes_max,
        };
        if !settings.is_registration_open {
            warn_without_account(server, &settings.login)?;
        }
        let router = actual::router(server.services(), settings);
        let path = if place == GatewayMount::Path(PATH) { PATH } else { "" };
        let gateway = Gateway { router, mount: place, idle_max: IDLE_MAX };
        let address = server.add_gateway(gateway)?;
        Ok(Some(format!("{}://{address}{path}", server.scheme())))
    }
}

/// Logs a warning with a remedy if no app can log in yet.
fn warn_without_account(server: &SyncServer, login: &Login) -> anyhow::Result<()> {
    match server.services().accounts().find(login) {
        Err(accounts::Error::NotFound) => {
            tracing::warn!(
                "Actual Budget apps cannot log in yet: create their account with \
                 `warren account add {login}`, or pass --actual-budget-open-registration"
            );
            Ok(())
        }
        found => Ok(found.map(drop)?),
    }
}

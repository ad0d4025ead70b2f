//! The options of `warren serve` for Actual Budget's apps.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use accounts::Login;
use actual::{GatewaySettings, IDLE_MAX};
use anyhow::{Context, bail, ensure};
use clap::Args;
use server::{Gateway, GatewayMount, SyncServer};

/// The path on the server's own listener.
const PATH: &str = "/actual";

/// Actual Budget's apps sync with this server.
#[derive(Args)]
#[command(next_help_heading = "Actual Budget")]
pub(crate) struct ActualGatewayArgs {
    /// Serve Actual Budget's apps, on an address of its own (127.0.0.1:5006) or under a path of
    /// this server (/actual).
    #[arg(long = "actual", value_name = "ADDRESS")]
    address: Option<GatewayAddress>,
    /// Serve the web app, too: the folder `build` of the npm package @actual-app/web.
    #[arg(long = "actual-web", value_name = "DIR", requires = "address")]
    web: Option<PathBuf>,
    /// The account that has the budgets; the apps know only its password.
    #[arg(long = "actual-login", default_value = "actual", value_name = "LOGIN")]
    login: String,
    /// Let nobody set the first password over the network: `warren account add actual` has made the
    /// account.
    #[arg(long = "actual-closed", requires = "address")]
    is_closed: bool,
    /// Log in those whom a trusted proxy has let in: it adds the account's password, as
    /// X-Actual-Password.
    #[arg(long = "actual-header-login", requires_all = ["address", "trusted_proxies"])]
    has_header_login: bool,
    /// Bytes of a budget's file at most.
    #[arg(long = "actual-upload-bytes-max", default_value_t = GatewaySettings::UPLOAD_BYTES_MAX)]
    #[arg(value_name = "BYTES")]
    upload_bytes_max: u64,
    /// Bytes of one request's messages at most.
    #[arg(long = "actual-sync-bytes-max", default_value_t = GatewaySettings::SYNC_BYTES_MAX)]
    #[arg(value_name = "BYTES")]
    sync_bytes_max: usize,
}

/// Where the apps come in.
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
            bail!("an address with a port (127.0.0.1:5006), or the path {PATH}")
        };
        Ok(Self(GatewayMount::Listener(address)))
    }
}

impl ActualGatewayArgs {
    /// Bytes of the largest request that is in memory as a whole.
    pub(crate) fn largest_request(&self) -> usize {
        self.address.as_ref().map_or(0, |_| self.sync_bytes_max)
    }

    /// Lets the apps in, if they are to be; returns the address that people give them.
    pub(crate) fn add_to(self, server: &mut SyncServer) -> anyhow::Result<Option<String>> {
        let Some(GatewayAddress(place)) = self.address else { return Ok(None) };
        if let Some(web) = &self.web {
            let is_listener = matches!(place, GatewayMount::Listener(_));
            ensure!(is_listener, "the web app wants an address of its own, not a path");
            let index = web.join("index.html");
            let is_there = index.is_file();
            ensure!(is_there, "{} is missing: --actual-web wants the web app", index.display());
        }
        let settings = GatewaySettings {
            login: Login::parse(&self.login).context("--actual-login")?,
            has_header_login: self.has_header_login,
            data: web_assets::ACTUAL_DATA,
            web: self.web,
            is_closed: self.is_closed,
            upload_bytes_max: self.upload_bytes_max,
            sync_bytes_max: self.sync_bytes_max,
        };
        let router = actual::router(server.services(), settings);
        let path = if place == GatewayMount::Path(PATH) { PATH } else { "" };
        let gateway = Gateway { router, mount: place, idle_max: IDLE_MAX };
        let address = server.add_gateway(gateway)?;
        Ok(Some(format!("{}://{address}{path}", server.scheme())))
    }
}

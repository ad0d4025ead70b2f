//! What every handler shares, and how a gateway is set up.

use std::path::PathBuf;

use accounts::Login;
use server::{Asset, GatewayServices};

use crate::gateway::last_seen::LastSeenCache;
use crate::gateway::upload_locks::UploadLocks;
use crate::gateway::web_files::WebFiles;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The Warren account that stands for the server's user.
    pub login: Login,
    /// Whether the first app that connects may set the password, where the account does not exist
    /// yet.
    pub is_registration_open: bool,
    /// Whether logins may come without a password: a trusted proxy adds it, in a header.
    pub has_header_login: bool,
    /// The files that `actualpy` asks for, where there is no web app, which has them, too.
    pub data: &'static [Asset],
    /// The web app: the folder `build` of the npm package `@actual-app/web`.
    pub web: Option<PathBuf>,
    /// Bytes of a budget file.
    pub upload_bytes_max: u64,
    /// Bytes of a request with messages.
    pub sync_bytes_max: usize,
}

impl GatewaySettings {
    /// Bytes of a budget file, unless told otherwise: ten times what the published server takes.
    pub const UPLOAD_BYTES_MAX: u64 = 500 << 20;
    /// Bytes of a request with messages, unless told otherwise: some 800,000 messages, five times
    /// what the published server takes.
    pub const SYNC_BYTES_MAX: usize = 100 << 20;
}

/// What every handler shares.
pub(crate) struct ActualGateway {
    pub(crate) services: GatewayServices,
    pub(crate) settings: GatewaySettings,
    pub(crate) last_seen: LastSeenCache,
    pub(crate) uploads: UploadLocks,
    pub(crate) web: WebFiles,
}

//! Defines the state that all handlers share, and the settings of a gateway.

use std::path::PathBuf;

use accounts::Login;
use server::{Asset, GatewayServices};

use crate::gateway::last_seen::LastSeenCache;
use crate::gateway::upload_locks::UploadLocks;
use crate::gateway::web_files::WebFiles;

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The Warren account that represents the server's user.
    pub login: Login,
    /// Whether the first app that connects may set the password, if the account does not exist yet.
    pub is_registration_open: bool,
    /// Whether apps may log in without a password because a trusted proxy adds it in a header.
    pub has_header_login: bool,
    /// The files that `actualpy` requests; used without a web app, which contains them, too.
    pub data: &'static [Asset],
    /// The web app: the directory `build` of the npm package `@actual-app/web`.
    pub web: Option<PathBuf>,
    /// The size limit of a budget file in bytes.
    pub upload_bytes_max: u64,
    /// The size limit of a request with messages in bytes.
    pub sync_bytes_max: usize,
}

impl GatewaySettings {
    /// The default size limit of a budget file: ten times that of the published server.
    pub const UPLOAD_BYTES_MAX: u64 = 500 << 20;
    /// The default size limit of a request with messages: about 800,000 messages, five times the
    /// limit of the published server.
    pub const SYNC_BYTES_MAX: usize = 100 << 20;
}

/// The state that all handlers share.
pub(crate) struct ActualGateway {
    pub(crate) services: GatewayServices,
    pub(crate) settings: GatewaySettings,
    pub(crate) last_seen: LastSeenCache,
    pub(crate) uploads: UploadLocks,
    pub(crate) web: WebFiles,
}

//! Implements `warren sync` and `warren clone`: brings a file and the server to the same set of
//! changes.

mod event_listener;
mod report;
pub(crate) mod sync_once;
pub(crate) mod watch;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use doctor::counted;
use engine::clock::now_ms;
use protocol::{ErrorCode, RegisterDeviceRequest};
use replica::{AccountCheck, Error, RecoveryPhraseError, Replica, ServerUrl, TrustedRoots};
use zeroize::Zeroize;

pub(crate) use self::report::{describe, describe_loss};
use self::sync_once::{ServerAddress, sync_once};
use self::watch::WatchOptions;
use super::recovery_phrase::{self, RecoveryPhraseSource};
use super::status::sync_status;
use crate::args::key_args::TrackedFileArgs;
use crate::args::password::PasswordSource;
use crate::args::permissions_warning;
use crate::output::{CommandError, Printer};

/// Sync a tracked file with the server.
///
/// The first sync requires --server and --login. The file then stores the server, the login and the
/// device token for later syncs. If the server has moved to another address, pass --server alone.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren sync a.db --server http://127.0.0.1:4600 --login ada  (first sync)\n  \
                        warren sync a.db                                             (later syncs)\n  \
                        warren sync a.db --watch                                     (keep syncing)"
)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    #[command(flatten)]
    account: AccountArgs,
    #[command(flatten)]
    server_move: ServerMoveArgs,
    /// Create tables and columns that exist on other devices but not in this file.
    #[arg(long)]
    create_missing: bool,
    /// First compare every row with the recorded changes, and send the differences. Rows differ if
    /// a program wrote to the file without Warren's triggers (`warren status --verify` lists them).
    #[arg(long)]
    compare: bool,
    /// Keep running until Ctrl-C, and sync whenever the file changes or another device sends
    /// changes. Prints one line per sync.
    #[arg(long)]
    watch: bool,
}

/// Create a file with the tables and rows of an account.
///
/// An interrupted clone resumes when you run it again.
#[derive(Args)]
#[command(mut_arg("file", |arg| arg.help("SQLite file to create, or interrupted clone to resume")))]
#[command(after_help = "Example:\n  warren clone b.db --server http://127.0.0.1:4600 --login ada")]
pub(crate) struct CloneArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Args)]
struct ServerMoveArgs {
    /// Confirm that the server in --server replaces the one that the file syncs with, and sign in
    /// there with the same login. The new server then receives every row. Needed only if that server
    /// does not know this device.
    #[arg(long, requires = "server", requires = "login")]
    server_moved: bool,
}

impl ServerMoveArgs {
    /// Returns what the account must have in common with the file's.
    fn check(&self) -> AccountCheck {
        if self.server_moved { AccountCheck::Login } else { AccountCheck::ServerAndLogin }
    }
}

#[derive(Args)]
struct AccountArgs {
    /// URL of the server, such as `http://127.0.0.1:4600`.
    #[arg(long, value_name = "URL")]
    server: Option<ServerUrl>,
    /// Trust only server certificates issued by the certificate authorities in this PEM file. The
    /// SQLite file stores them for later syncs with this server. Default: the certificate
    /// authorities that the system trusts.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Account to sign in to. Prompts for its password.
    #[arg(long)]
    login: Option<String>,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    phrase: RecoveryPhraseSource,
    /// Name of this device, shown in the device list [default: file name and host name]
    #[arg(long, value_name = "NAME")]
    device_name: Option<String>,
}

pub(crate) fn sync(arguments: &SyncArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let (account, create_missing) = (&arguments.account, arguments.create_missing);
    if arguments.compare {
        let spinner = output.spinner(format_args!("comparing"));
        replica.capture_differences(now_ms())?;
        spinner.finish_and_clear();
    }
    let check = arguments.server_move.check();
    if !arguments.watch {
        return sync_and_report(replica, account, check, create_missing, output);
    }
    let server = set_up_sign_in(&replica, account, check, output)?;
    watch::watch(WatchOptions { replica, server, create_missing, output })
}

pub(crate) fn clone(arguments: &CloneArgs, output: Printer) -> anyhow::Result<()> {
    let path = &arguments.tracked.file;
    let account = &arguments.account;
    if account.server.is_none() || account.login.is_none() {
        return Err(Error::ServerNotConfigured.into());
    }
    let replica = if path.exists() {
        let exists = || {
            let message =
                format!("{} already exists and is not an interrupted clone", path.display());
            CommandError::new(ErrorCode::FileExists, message).with_hint("choose a new file name")
        };
        arguments.tracked.resume()?.ok_or_else(exists)?
    } else {
        arguments.tracked.create()?
    };
    let result = sync_and_report(replica, account, AccountCheck::ServerAndLogin, true, output);
    let has_no_token = |replica: Replica| replica.token().is_ok_and(|token| token.is_none());
    if result.is_err() && arguments.tracked.open().is_ok_and(has_no_token) {
        // The file never signed in, so it contains nothing worth resuming.
        std::fs::remove_file(path)?;
    }
    result
}

fn sync_and_report(
    mut replica: Replica,
    account: &AccountArgs,
    check: AccountCheck,
    create_missing: bool,
    output: Printer,
) -> anyhow::Result<()> {
    let server = set_up_sign_in(&replica, account, check, output)?;
    let report = match (sync_once(&mut replica, &server, create_missing, output), &account.login) {
        // The device was revoked, or the account was created again: with --login, the file signs in
        // again.
        (Err(Error::RejectedByServer { code: ErrorCode::InvalidToken, .. }), Some(login)) => {
            sign_in(&replica, &server, login, account, check)?;
            sync_once(&mut replica, &server, create_missing, output)?
        }
        (Err(error @ Error::RecoveryPhrase(RecoveryPhraseError::Required)), _) => {
            if !recovery_phrase::prompt_for_phrase(&replica, output)? {
                return Err(error.into());
            }
            sync_once(&mut replica, &server, create_missing, output)?
        }
        (Err(error @ Error::RejectedByServer { code: ErrorCode::QuotaExceeded, .. }), _) => {
            let unsent = counted(replica.pending_upload_count()?, "change", "changes");
            return Err(anyhow::Error::from(error).context(format!(
                "{unsent} cannot be sent until the server's operator raises the account's \
                 quota; received changes were applied"
            )));
        }
        (report, _) => report?,
    };
    describe(replica.path(), &report, output);
    let refused = report.rejected.count() > 0 || replica.has_rejected()?;
    anyhow::ensure!(report.in_sync, not_in_sync(refused));
    output.json(&report)?;
    // Device names are only for people: a sync does not fail because of them.
    drop(sync_status::fetch_device_list(&replica));
    Ok(())
}

fn not_in_sync(has_rejected: bool) -> CommandError {
    if !has_rejected {
        let message = "this file and the server still differ after all changes were compared";
        return CommandError::new(ErrorCode::NotInSync, message);
    }
    let message = "this file and the server differ: some changes could not be applied";
    CommandError::new(ErrorCode::NotInSync, message)
        .with_hint("run `warren status FILE` to see how many")
}

/// Stores the phrase, the token and the certificate authorities that the file needs, and returns
/// its server.
fn set_up_sign_in(
    replica: &Replica,
    account: &AccountArgs,
    check: AccountCheck,
    output: Printer,
) -> anyhow::Result<ServerAddress> {
    let known = replica.server()?;
    let address = match (&account.server, &known) {
        (Some(server), _) => server.as_str(),
        (None, Some(known)) => known,
        (None, None) => return Err(Error::ServerNotConfigured.into()),
    };
    let is_moved = known.as_deref().is_some_and(|known| known != address);
    if let Some(login) = &account.login {
        replica.check_account(address, login, check)?;
    }
    let authorities = match &account.ca_file {
        Some(path) => Some(read_authorities(path)?),
        None if is_moved => None,
        None => replica.authorities()?,
    };
    let roots = authorities.as_deref().map(TrustedRoots::from_pem).transpose()?;
    let server = ServerAddress { address: address.to_owned(), roots: roots.unwrap_or_default() };
    if is_moved && account.login.is_none() {
        follow_server(replica, &server)?;
    }
    let mut has_new_secrets = account.phrase.apply_to(replica)?;
    if let Some(login) = &account.login
        && (is_moved || replica.token()?.is_none())
    {
        sign_in(replica, &server, login, account, check)?;
        has_new_secrets = true;
    }
    let is_remembered = replica.server()?.is_some_and(|known| known == server.address);
    if is_remembered && replica.authorities()? != authorities {
        replica.set_authorities(authorities.as_deref())?;
    }
    if has_new_secrets {
        permissions_warning::warn_if_readable_by_others(replica.path(), output)?;
    }
    Ok(server)
}

/// Records a new address of the file's server, if the server there knows the file.
fn follow_server(replica: &Replica, server: &ServerAddress) -> anyhow::Result<()> {
    // Without a token, the server answers with `invalid_token`.
    let token = replica.token()?.unwrap_or_default();
    let devices = server.http().devices(&token)?;
    Ok(replica.follow_server(&server.address, &devices)?)
}

/// Reads a file with the certificates of authorities, and checks that it has some.
fn read_authorities(path: &Path) -> anyhow::Result<String> {
    let name = || path.display().to_string();
    let pem = std::fs::read_to_string(path).with_context(name)?;
    TrustedRoots::from_pem(&pem).with_context(name)?;
    Ok(pem)
}

/// Registers the file as a device of the account.
fn sign_in(
    replica: &Replica,
    server: &ServerAddress,
    login: &str,
    account: &AccountArgs,
    check: AccountCheck,
) -> anyhow::Result<()> {
    let address = &server.address;
    let password = account.password.read(&format!("Password for {login} on {address}: "))?;
    let name = account.device_name.clone().unwrap_or_else(|| default_name(replica.path()));
    let mut request =
        RegisterDeviceRequest { login: login.to_owned(), password: password.to_string(), name };
    let result = replica.sign_in(&mut server.http(), address, &request, check);
    request.password.zeroize();
    Ok(result?)
}

/// Returns a name that people recognize in a list of devices, such as `a.db on laptop`.
fn default_name(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(host) => format!("{file} on {}", host.trim()),
        Err(_) => file.into_owned(),
    }
}

//! Implements `warren account quota`: shows or changes the limits of an account.

use accounts::{AccountLimits, DEVICES_COUNT_MAX, Login};
use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::output::Printer;

/// Show or change the quota of an account.
///
/// If you pass no limit, shows the quota. A push that exceeds the quota is rejected as a whole; the
/// account's devices still receive changes, and keep the changes that they could not send. A
/// running server applies new limits to the next request.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren account quota ada --messages 1000000 --bytes 500000000\n  \
                        warren account quota ada --devices 20 --mail-bytes 1000000000\n  \
                        warren account quota ada --messages default"
)]
pub(crate) struct AccountQuotaArgs {
    /// Account to show or change.
    login: String,
    /// Maximum number of messages, or `default` for the server's limit.
    #[arg(long, value_name = "COUNT", value_parser = parse)]
    messages: Option<QuotaArg>,
    /// Maximum size of all message contents in bytes, or `default` for the server's limit.
    #[arg(long, value_name = "BYTES", value_parser = parse)]
    bytes: Option<QuotaArg>,
    /// Maximum number of devices (up to 900), or `default` for the server's limit.
    #[arg(long, value_name = "COUNT", value_parser = parse_devices)]
    devices: Option<QuotaArg>,
    /// Maximum size of the account's mail in bytes, as it is stored, or `default` for the server's
    /// limit. Further mail is refused for now, and the mail transfer agent sends it again.
    #[arg(long, value_name = "BYTES", value_parser = parse)]
    mail_bytes: Option<QuotaArg>,
    #[command(flatten)]
    data: DataDirArgs,
}

/// A limit from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuotaArg {
    Default,
    Custom(u64),
}

impl QuotaArg {
    fn custom(self) -> Option<u64> {
        match self {
            Self::Default => None,
            Self::Custom(limit) => Some(limit),
        }
    }
}

/// The output of `warren account quota`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountQuotaOutput {
    /// The login of the account.
    login: String,
    /// The account's own limits after the command.
    limits: AccountQuota,
}

/// An account's own limits. A limit that is null is the server's default.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the keys of the JSON")]
pub(crate) struct AccountQuota {
    /// The largest number of messages in the vault; null for the server's default.
    messages_max: Option<u64>,
    /// The largest size of all message contents in bytes; null for the server's default.
    bytes_max: Option<u64>,
    /// The largest number of devices; null for the server's default.
    devices_max: Option<u32>,
    /// The largest size of the account's mail in bytes; null for the server's default.
    mail_bytes_max: Option<u64>,
}

impl From<AccountLimits> for AccountQuota {
    fn from(limits: AccountLimits) -> Self {
        let AccountLimits { messages_max, bytes_max, devices_max, mail_bytes_max } = limits;
        Self { messages_max, bytes_max, devices_max, mail_bytes_max }
    }
}

fn parse(text: &str) -> Result<QuotaArg, String> {
    match text {
        "default" => Ok(QuotaArg::Default),
        number => number
            .parse()
            .map(QuotaArg::Custom)
            .map_err(|error| format!("{error} (expected a number or `default`)")),
    }
}

fn parse_devices(text: &str) -> Result<QuotaArg, String> {
    match parse(text)? {
        QuotaArg::Custom(count) if count > DEVICES_COUNT_MAX.into() => {
            Err(format!("must be at most {DEVICES_COUNT_MAX}"))
        }
        limit => Ok(limit),
    }
}

pub(crate) fn run(arguments: &AccountQuotaArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let (messages, bytes, mail) = (arguments.messages, arguments.bytes, arguments.mail_bytes);
    let devices = arguments.devices.map(|limit| {
        limit.custom().map(|count| u32::try_from(count).expect("`parse_devices` has seen to it"))
    });
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let limits = data_dir.accounts.change_limits(&login, move |limits| {
        limits.messages_max = messages.map_or(limits.messages_max, QuotaArg::custom);
        limits.bytes_max = bytes.map_or(limits.bytes_max, QuotaArg::custom);
        limits.devices_max = devices.unwrap_or(limits.devices_max);
        limits.mail_bytes_max = mail.map_or(limits.mail_bytes_max, QuotaArg::custom);
    })?;
    output.line(format_args!("{login}: {}", describe(limits)));
    output.json(&AccountQuotaOutput { login: login.to_string(), limits: limits.into() })
}

/// Describes the limits for people.
pub(crate) fn describe(limits: AccountLimits) -> String {
    let text = |limit: Option<u64>| {
        limit.map_or("server default".to_owned(), |max| HumanCount(max).to_string())
    };
    let (messages, bytes) = (text(limits.messages_max), text(limits.bytes_max));
    let devices = text(limits.devices_max.map(u64::from));
    let mail = text(limits.mail_bytes_max);
    format!("limits: messages {messages}, bytes {bytes}, devices {devices}, mail bytes {mail}")
}

//! What a program is told of an error: its code, and the exit status that goes with it
//! (`docs/formats/4-errors.md`).

use std::process::ExitCode;

use serde_json::json;

use crate::commands::serve::settings::resolved::InvalidSettings;
use crate::output::{EscapedText, NonZeroExit, Printer, print, print_error};

impl Printer {
    /// Reports how the command ended: 0, or the error and the status of its code, or the status of
    /// its verdict.
    pub(crate) fn exit(self, result: anyhow::Result<()>) -> ExitCode {
        let Err(error) = result else { return ExitCode::SUCCESS };
        if let Some(NonZeroExit(status)) = error.downcast_ref() {
            return ExitCode::from(*status);
        }
        let code = code(&error);
        if self.json {
            let message = message(&error);
            print(&EscapedText::json(json!({"error": {"code": code, "message": message}})));
        } else {
            let message = message(&error);
            print_error(&EscapedText::line(format_args!("warren: {message} [{code}]")));
        }
        ExitCode::from(exit_status(code))
    }
}

/// The error's code: the closed list's where it has one (`docs/formats/4-errors.md`).
pub(crate) fn code(error: &anyhow::Error) -> &'static str {
    if let Some(error) = error.downcast_ref::<replica::Error>() {
        return error.code();
    }
    if let Some(error) = error.downcast_ref::<::doctor::Error>() {
        return error.code();
    }
    #[cfg(feature = "bench")]
    if error.is::<::bench::sqlite_bench::runtime::NotSetUp>() {
        return "not_set_up";
    }
    if error.is::<InvalidSettings>() {
        return "invalid_settings";
    }
    if let Some(error) = error.downcast_ref::<::actual::inventory::InventoryError>() {
        return error.code();
    }
    if let Some(error) = error.downcast_ref::<::actual::export::ExportError>() {
        return error.code();
    }
    if let Some(server::Error::Tls(_)) = error.downcast_ref() {
        return "invalid_certificate";
    }
    let stored = match error.downcast_ref::<server::Error>() {
        Some(server::Error::Store(error)) => Some(error),
        _ => error.downcast_ref::<sync_store::Error>(),
    };
    match stored {
        Some(sync_store::Error::Busy(_)) => return "busy",
        Some(sync_store::Error::DataInUse { .. }) => return "data_directory_in_use",
        Some(sync_store::Error::Unavailable(_)) => return "unavailable",
        _ => {}
    }
    let of_engine = match stored {
        Some(sync_store::Error::Engine(error)) => Some(error),
        _ => error.downcast_ref::<engine::Error>(),
    };
    if let Some(code) = of_engine.and_then(engine_code) {
        return code;
    }
    let of_accounts = match error.downcast_ref::<server::Error>() {
        Some(server::Error::Accounts(error)) => Some(error),
        _ => error.downcast_ref::<accounts::Error>(),
    };
    let Some(error) = of_accounts else { return "failed" };
    match error {
        accounts::Error::AccountExists => "account_exists",
        accounts::Error::Engine(error) => engine_code(error).unwrap_or("failed"),
        accounts::Error::InvalidLogin => "invalid_login",
        accounts::Error::InvalidPassword => "invalid_password",
        accounts::Error::NotFound => "not_found",
        accounts::Error::UnfinishedRestore { .. } => "unfinished_restore",
        accounts::Error::WrongPassword => "wrong_password",
        _ => "failed",
    }
}

/// The code of an error of the engine, if it is one that somebody can do something about.
fn engine_code(error: &engine::Error) -> Option<&'static str> {
    Some(match error {
        engine::Error::Busy | engine::Error::CopyOvertaken { .. } => "busy",
        engine::Error::DiskFull { .. } => "disk_full",
        engine::Error::NotEnoughSpace { .. } => "not_enough_space",
        engine::Error::SchemaTooNew { .. } => "format_too_new",
        engine::Error::SchemaTooOld { .. } => "format_too_old",
        engine::Error::WrongKey { .. } | engine::Error::NotEncrypted { .. } => "wrong_key",
        _ => return None,
    })
}

/// What scripts branch on: the numbers of `sysexits.h` where one fits (`docs/formats/4-errors.md`).
pub(crate) fn exit_status(code: &str) -> u8 {
    match code {
        "server_damaged" | "unavailable" | "unexpected_response" | "unreachable" | "untrusted" => {
            69
        }
        "disk_full" | "not_enough_space" | "quota_exceeded" | "storage_failed" | "storage_full" => {
            74
        }
        "busy" | "timeout" | "too_many_attempts" => 75,
        "admin_disabled"
        | "invalid_token"
        | "read_only"
        | "registration_closed"
        | "wrong_password" => 77,
        _ => 1,
    }
}

/// The error and what it comes from, each part once: some errors repeat their source in their own
/// text.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for part in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = part;
        } else if !message.contains(&part) {
            message = format!("{message}: {part}");
        }
    }
    message
}

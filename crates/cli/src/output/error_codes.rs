//! Finds the code of an error (`docs/reference/formats/4-errors.md`).
//!
//! # Invariants
//! - The same problem has the same code in all commands and libraries: a missing file, a wrong key,
//!   a file that is in use, a full disk.

use std::error::Error as StdError;
use std::io;
use std::time::TryFromFloatSecsError;

use ::actual::export::ExportError;
use ::actual::import::ImportError;
use ::actual::inventory::InventoryError;
use protocol::ErrorCode;

use super::command_error::CommandError;
use crate::commands::serve::settings::resolved::InvalidSettings;

/// Returns the code of the first of an error's causes that has one.
pub(crate) fn code(error: &anyhow::Error) -> ErrorCode {
    if let Some(error) = error.downcast_ref::<CommandError>() {
        return error.code;
    }
    error.chain().find_map(code_of_cause).unwrap_or(ErrorCode::Internal)
}

fn code_of_cause(cause: &(dyn StdError + 'static)) -> Option<ErrorCode> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return io_code(error);
    }
    if let Some(error) = cause.downcast_ref::<rusqlite::Error>() {
        return Some(replica::sqlite_code(error));
    }
    if let Some(error) = cause.downcast_ref::<replica::Error>() {
        return Some(error.code());
    }
    if let Some(error) = cause.downcast_ref::<engine::Error>() {
        return engine_code(error);
    }
    if let Some(error) = cause.downcast_ref::<::doctor::Error>() {
        return doctor_code(error);
    }
    if let Some(error) = cause.downcast_ref::<accounts::Error>() {
        return accounts_code(error);
    }
    if let Some(error) = cause.downcast_ref::<sync_store::Error>() {
        return store_code(error);
    }
    if let Some(error) = cause.downcast_ref::<mail_store::Error>() {
        return mail_code(error);
    }
    if let Some(error) = cause.downcast_ref::<mail_server::Error>() {
        return mail_server_code(error);
    }
    if let Some(error) = cause.downcast_ref::<server::Error>() {
        return server_code(error);
    }
    if let Some(error) = cause.downcast_ref::<InventoryError>() {
        return inventory_code(error);
    }
    if let Some(error) = cause.downcast_ref::<ExportError>() {
        return export_code(error);
    }
    if let Some(error) = cause.downcast_ref::<ImportError>() {
        return import_code(error);
    }
    if cause.is::<TryFromFloatSecsError>() {
        return Some(ErrorCode::InvalidArgument);
    }
    #[cfg(feature = "bench")]
    if cause.is::<::bench::sqlite_bench::runtime::NotSetUp>()
        || cause.is::<::bench::mail::DovecotNotInstalled>()
    {
        return Some(ErrorCode::NotInstalled);
    }
    let is_setting = cause.is::<InvalidSettings>() || cause.is::<server::InvalidAdminToken>();
    is_setting.then_some(ErrorCode::InvalidSettings)
}

fn io_code(error: &io::Error) -> Option<ErrorCode> {
    use io::ErrorKind as K;
    Some(match error.kind() {
        K::NotFound => ErrorCode::FileNotFound,
        K::PermissionDenied => ErrorCode::PermissionDenied,
        K::StorageFull | K::QuotaExceeded => ErrorCode::DiskFull,
        K::AlreadyExists | K::DirectoryNotEmpty => ErrorCode::FileExists,
        K::IsADirectory | K::NotADirectory | K::TooManyLinks => ErrorCode::NotAFile,
        K::ResourceBusy => ErrorCode::Busy,
        K::ReadOnlyFilesystem => ErrorCode::ReadOnly,
        K::AddrInUse => ErrorCode::AddressInUse,
        K::InvalidData => ErrorCode::InvalidFile,
        _ => return None,
    })
}

fn engine_code(error: &engine::Error) -> Option<ErrorCode> {
    use engine::Error as E;
    Some(match error {
        E::Busy | E::CopyOvertaken { .. } => ErrorCode::Busy,
        E::DiskFull { .. } | E::NotEnoughSpace { .. } => ErrorCode::DiskFull,
        E::SchemaTooNew { .. } => ErrorCode::FormatTooNew,
        E::SchemaTooOld { .. } => ErrorCode::FormatTooOld,
        E::WrongKey { .. } | E::NotEncrypted { .. } => ErrorCode::WrongKey,
        E::NotADatabase { .. } => ErrorCode::NotADatabase,
        E::ReadOnly { .. } => ErrorCode::ReadOnly,
        E::Poisoned { .. } => ErrorCode::StorageFailed,
        E::CopyDiffers { .. } | E::AlreadyQuarantined { .. } => ErrorCode::CorruptDatabase,
        E::Closed => ErrorCode::Closed,
        // The inner error is the next cause.
        E::Sqlite { .. } | E::Io { .. } | E::Application { .. } => return None,
        _ => ErrorCode::Internal,
    })
}

fn doctor_code(error: &::doctor::Error) -> Option<ErrorCode> {
    use ::doctor::Error as E;
    Some(match error {
        E::FileNotFound(_) => ErrorCode::FileNotFound,
        E::NotAFile(_) => ErrorCode::NotAFile,
        E::NoPermission(_) => ErrorCode::PermissionDenied,
        E::NotADatabase(_) => ErrorCode::NotADatabase,
        E::WrongKey(_) | E::NothingReadable(_) => ErrorCode::WrongKey,
        E::InvalidQuery { .. } => ErrorCode::InvalidQuery,
        E::InvalidSettings { .. } => ErrorCode::InvalidSettings,
        E::NotFixable { .. } => ErrorCode::NotFixable,
        E::FixFailed { .. } => ErrorCode::FixFailed,
        E::InUse(_) => ErrorCode::Busy,
        E::NoRoom { .. } => ErrorCode::DiskFull,
        E::NoUndo(_) => ErrorCode::UndoNotFound,
        E::Exists(_) => ErrorCode::FileExists,
        E::NothingRecovered(_) => ErrorCode::NothingRecovered,
        E::Engine(error) => return engine_code(error),
        E::Sqlite { .. } | E::Io { .. } => return None,
        _ => ErrorCode::Internal,
    })
}

fn accounts_code(error: &accounts::Error) -> Option<ErrorCode> {
    use accounts::Error as E;
    Some(match error {
        E::AccountExists => ErrorCode::AccountExists,
        E::InvalidLogin => ErrorCode::InvalidLogin,
        E::InvalidPassword => ErrorCode::InvalidPassword,
        E::InvalidToken => ErrorCode::InvalidToken,
        E::NotFound => ErrorCode::NotFound,
        E::WrongPassword | E::WrongRecoverySecret => ErrorCode::WrongPassword,
        E::TooManyDevices { .. } | E::TooManySubVaults => ErrorCode::QuotaExceeded,
        E::InvalidMailAddress { .. } => ErrorCode::InvalidMailAddress,
        E::MailAddressNotFound => ErrorCode::MailAddressNotFound,
        E::MailAddressTaken => ErrorCode::MailAddressTaken,
        E::MailNotSetUp => ErrorCode::MailNotSetUp,
        E::TooManyMailAddresses => ErrorCode::TooManyMailAddresses,
        E::TooManyMailPasswords => ErrorCode::TooManyMailPasswords,
        E::MailPasswordNameTooLong => ErrorCode::TooLarge,
        E::KeyMismatch => ErrorCode::EncryptionMismatch,
        E::Damaged { .. } => ErrorCode::CorruptDatabase,
        E::UnfinishedRestore { .. } => ErrorCode::UnfinishedRestore,
        E::Engine(error) => return engine_code(error),
        _ => ErrorCode::Internal,
    })
}

fn store_code(error: &sync_store::Error) -> Option<ErrorCode> {
    use sync_store::Error as E;
    Some(match error {
        E::Busy(_) => ErrorCode::Busy,
        E::DataInUse { .. } => ErrorCode::DataDirectoryInUse,
        E::Unavailable(_) => ErrorCode::Unavailable,
        E::QuotaExceeded { .. } => ErrorCode::QuotaExceeded,
        E::TimestampConflict { .. } => ErrorCode::TimestampConflict,
        E::Unreadable { .. } => ErrorCode::CorruptDatabase,
        E::CopyDiffers { .. } => ErrorCode::NotInSync,
        E::PostgresUrl(_) => ErrorCode::InvalidSettings,
        E::PostgresSchema(_) => ErrorCode::StorageSchemaMismatch,
        E::Engine(error) => return engine_code(error),
        E::Accounts(error) => return accounts_code(error),
        E::Io { .. } => return None,
        _ => ErrorCode::Internal,
    })
}

fn mail_code(error: &mail_store::Error) -> Option<ErrorCode> {
    use mail_store::Error as E;
    Some(match error {
        E::MailboxNotFound { .. } => ErrorCode::MailboxNotFound,
        E::InvalidMailboxName { .. } => ErrorCode::InvalidMailboxName,
        E::MessageTooLarge { .. } | E::AddressTooLong => ErrorCode::TooLarge,
        E::WrongKey => ErrorCode::WrongKey,
        E::UnknownVersion { .. } => ErrorCode::FormatTooNew,
        E::TooManyMailboxes | E::TooManyKeywords | E::UidsUsedUp { .. } => ErrorCode::QuotaExceeded,
        E::NotAMaildir { .. } | E::NotAnMbox { .. } => ErrorCode::InvalidFile,
        E::NotEmpty { .. } => ErrorCode::FileExists,
        E::Damaged { .. } => ErrorCode::CorruptDatabase,
        E::Engine(error) => return engine_code(error),
        E::Io { .. } => return None,
        _ => ErrorCode::Internal,
    })
}

fn mail_server_code(error: &mail_server::Error) -> Option<ErrorCode> {
    use mail_server::Error as E;
    match error {
        // The inner error is the next cause.
        E::Listen { .. } => None,
        E::Accounts(error) => accounts_code(error),
        E::Store(error) => mail_code(error),
        E::Engine(error) => engine_code(error),
        _ => Some(ErrorCode::Internal),
    }
}

fn server_code(error: &server::Error) -> Option<ErrorCode> {
    use server::Error as E;
    match error {
        // The inner error is the next cause.
        E::Listen { .. } | E::Tls(server::TlsError::Io { .. }) => None,
        E::Tls(_) => Some(ErrorCode::InvalidCertificate),
        E::Accounts(error) => accounts_code(error),
        E::Engine(error) => engine_code(error),
        E::Store(error) => store_code(error),
        _ => Some(ErrorCode::Internal),
    }
}

fn inventory_code(error: &InventoryError) -> Option<ErrorCode> {
    use InventoryError as E;
    Some(match error {
        E::NotFound { .. } => ErrorCode::BudgetNotFound,
        E::Ambiguous { .. } => ErrorCode::AmbiguousName,
        E::NotDeleted { .. } => ErrorCode::BudgetNotDeleted,
        E::Record(_) | E::Trie(_) => ErrorCode::CorruptBudget,
        E::Accounts(error) => return accounts_code(error),
        E::Store(error) => return store_code(error),
        _ => ErrorCode::Internal,
    })
}

fn export_code(error: &ExportError) -> Option<ErrorCode> {
    use ExportError as E;
    Some(match error {
        E::NoFile => ErrorCode::BudgetFileMissing,
        E::Encrypted => ErrorCode::PasswordRequired,
        E::WrongKeyPassword => ErrorCode::WrongPassword,
        E::TooLarge => ErrorCode::TooLarge,
        E::NewerApp { .. } => ErrorCode::AppTooNew,
        E::Damaged(_) => ErrorCode::CorruptBudget,
        E::Changed => ErrorCode::Busy,
        E::Store(error) => return store_code(error),
        _ => ErrorCode::Internal,
    })
}

fn import_code(error: &ImportError) -> Option<ErrorCode> {
    use ImportError as E;
    Some(match error {
        E::Missing(_) => ErrorCode::FileNotFound,
        E::TooOld { .. } => ErrorCode::FormatTooOld,
        E::NoPassword => ErrorCode::PasswordRequired,
        E::WrongPassword => ErrorCode::WrongPassword,
        E::Accounts(error) => return accounts_code(error),
        E::Store(error) => return store_code(error),
        E::Old { source, .. } => return engine_code(source),
        E::Io { .. } => return None,
        _ => ErrorCode::Internal,
    })
}

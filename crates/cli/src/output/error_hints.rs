//! Finds the remedy for an error, in terms of the command line. Libraries only state facts.

use protocol::ErrorCode;
use replica::{Error, RecoveryPhraseError};

use super::command_error::CommandError;

/// Returns the remedy, if there is one that usually helps.
pub(crate) fn hint(error: &anyhow::Error, code: ErrorCode) -> Option<String> {
    if let Some(error) = error.downcast_ref::<CommandError>()
        && error.hint.is_some()
    {
        return error.hint.clone();
    }
    if let Some(sync_store::Error::CopyDiffers { .. }) = error.downcast_ref() {
        return Some(
            "pass --overwrite-destination to replace the data at the destination".to_owned(),
        );
    }
    let of_replica = error.downcast_ref().and_then(replica_hint);
    of_replica.or_else(|| Some(code_hint(code)?.to_owned()))
}

/// Returns the remedies that contain names from the error.
fn replica_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NotTracked { path } => format!("run `warren track {path} --all` first"),
        Error::SchemaChanged { table, .. } => format!(
            "if this was intended, run `warren untrack FILE {table}`, then `warren track FILE {table}`"
        ),
        Error::Referenced { same: Some(id), .. } => format!(
            "run `warren conflicts FILE --merge {id}` to make them refer to the row that is shown"
        ),
        Error::WrongKey => {
            "pass the key that the file was encrypted with (--key-file or --passphrase-file)"
                .to_owned()
        }
        Error::RecoveryPhrase(RecoveryPhraseError::AccountNotEncrypted) => {
            "check the account; if the server was restored from an old backup, run \
             `warren track FILE --all --e2ee` to encrypt the account again"
                .to_owned()
        }
        _ => return None,
    })
}

fn code_hint(code: ErrorCode) -> Option<&'static str> {
    use ErrorCode as E;
    Some(match code {
        E::AccountDiffers => {
            "to sync with that account, leave out --login; if its server has moved, pass --server \
             alone, or with --login and --server-moved if the server no longer knows this device; \
             to use another account, run `warren untrack FILE` first"
        }
        E::AdminDisabled => "start the server with --admin-token-file",
        E::AmbiguousId => "use more digits of the id",
        E::BudgetNotFound => "run `warren actual-budget list` to list the budgets",
        E::Busy => "try again later; if another program has the file open, close it first",
        E::ConfirmationRequired => "pass --yes to confirm",
        E::ConflictNotFound => "run `warren conflicts FILE` to list the conflicts",
        E::DataDirectoryInUse => "stop the server first",
        E::DiskFull => "free some space and try again",
        E::FormatTooNew => "update Warren",
        E::HostNotAllowed => "start the server with --allow-host and this name",
        E::InvalidToken => {
            "run `warren sync FILE --login NAME` to sign in again (if the server has moved, with \
             --server URL --server-moved)"
        }
        E::NotADatabase => {
            "if the file is encrypted, pass --key-file or --passphrase-file; if it is damaged, run \
             `warren recover` to save the readable data"
        }
        E::NotADataDirectory => "pass --data DIR with the data directory of a server",
        E::NotInSync => "sync again",
        E::NothingRecovered => "if the file is encrypted, pass --key-file or --passphrase-file",
        E::ProxyBodyLimit => {
            "raise the proxy's body size limit to the server's (nginx: client_max_body_size 16m)"
        }
        E::RecoveryPhraseRequired | E::WrongRecoveryPhrase => {
            "run `warren recovery-phrase FILE` on another device to see the phrase, then pass it \
             with --recovery-phrase-file FILE"
        }
        E::RecoveryPhraseUnverified => {
            "first sync the device that created the phrase, or pass --new-account if the phrase \
             was created for this account"
        }
        E::Referenced => {
            "delete those rows first, or set a value with which this row fits (--resolve)"
        }
        E::ServerNotConfigured => "pass --server URL and --login NAME once",
        E::StillShown => "change the value or delete the row, sync, then erase again",
        E::StorageSchemaMismatch => {
            "run the output of `warren storage schema` as a PostgreSQL user who may create tables"
        }
        E::TableNotFound => "run `warren status FILE` to list the tracked tables",
        E::UnfinishedRestore => "run `warren restore` again",
        E::UnsentChanges => {
            "sync first, or pass --force if other devices do not need these changes"
        }
        E::Untrusted => {
            "if the certificate is from an authority of your own, pass the authority's certificate \
             with --ca-file FILE"
        }
        E::WrongKey => {
            "if the key is right, pass the cipher with --cipher; if the file is damaged, run \
             `warren recover` to save the readable data"
        }
        _ => return None,
    })
}

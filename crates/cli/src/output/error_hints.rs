//! What to do about an error, in words of the command line. Libraries state the fact alone.

use protocol::ErrorCode;
use replica::{Error, RecoveryPhraseError};

use super::command_error::CommandError;

/// What to do, if there is something that helps as a rule.
pub(crate) fn hint(error: &anyhow::Error, code: ErrorCode) -> Option<String> {
    if let Some(error) = error.downcast_ref::<CommandError>()
        && error.hint.is_some()
    {
        return error.hint.clone();
    }
    if let Some(sync_store::Error::CopyDiffers { .. }) = error.downcast_ref() {
        return Some("--overwrite-destination replaces what is there".to_owned());
    }
    let of_replica = error.downcast_ref().and_then(replica_hint);
    of_replica.or_else(|| Some(code_hint(code)?.to_owned()))
}

/// With the names that the error holds.
fn replica_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NotTracked { path } => format!("run `warren track {path} --all` first"),
        Error::SchemaChanged { table, .. } => format!(
            "if this was intended, run `warren untrack FILE {table}`, then `warren track FILE {table}`"
        ),
        Error::Referenced { same: Some(id), .. } => format!(
            "`warren conflicts FILE --merge {id}` makes them refer to the row that is shown"
        ),
        Error::WrongKey => {
            "give the key that the file was encrypted with, by --key-file or --passphrase-file"
                .to_owned()
        }
        Error::RecoveryPhrase(RecoveryPhraseError::AccountNotEncrypted) => {
            "if the server was restored from an old backup, `warren track FILE --all --e2ee` \
             encrypts the account again"
                .to_owned()
        }
        _ => return None,
    })
}

fn code_hint(code: ErrorCode) -> Option<&'static str> {
    use ErrorCode as E;
    Some(match code {
        E::AdminDisabled => "the server needs the option --admin-token-file",
        E::AmbiguousId => "give more digits of the id",
        E::BudgetNotFound => "`warren actual-budget list` lists the budgets",
        E::Busy => "try again later; if a program has the file open, close it there first",
        E::ConfirmationRequired => "--yes confirms it",
        E::ConflictNotFound => "`warren conflicts FILE` lists the conflicts",
        E::DataDirectoryInUse => "stop the server first",
        E::DiskFull => "free some space and try again",
        E::FormatTooNew => "update Warren",
        E::HostNotAllowed => "the server needs the option --allow-host with this name",
        E::NotADatabase => {
            "if it is encrypted, give --key-file or --passphrase-file; if it is damaged, \
             `warren recover` saves what can be read"
        }
        E::NotADataDirectory => "--data names the data directory of a server",
        E::NotInSync => "sync again",
        E::NothingRecovered => "if the file is encrypted, give --key-file or --passphrase-file",
        E::ProxyBodyLimit => {
            "give the proxy the server's own limit on bodies (nginx: client_max_body_size 16m)"
        }
        E::RecoveryPhraseRequired | E::WrongRecoveryPhrase => {
            "`warren recovery-phrase` shows the phrase on another device; give it with \
             --recovery-phrase-file FILE"
        }
        E::RecoveryPhraseUnverified => {
            "sync the device that created the phrase first, or give --new-account if it was \
             created for this account"
        }
        E::Referenced => "delete those rows first, or give this row a value that fits",
        E::ServerNotConfigured => "give --server and --login once",
        E::StillShown => "change it or delete the row, sync, and then erase what it was",
        E::StorageSchemaMismatch => {
            "somebody who may create tables runs the output of `warren storage schema`"
        }
        E::TableNotFound => "`warren status FILE` lists the tables that sync",
        E::UnfinishedRestore => "run `warren restore` again",
        E::UnsentChanges => "sync first, or give them up with --force",
        E::WrongKey => {
            "if the key is right, name the cipher with --cipher; if the file is damaged, \
             `warren recover` saves what can be read"
        }
        _ => return None,
    })
}

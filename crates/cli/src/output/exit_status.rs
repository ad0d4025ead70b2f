//! Defines the exit statuses (`docs/reference/formats/4-errors.md`).

use protocol::ErrorCode;

/// A check found something that is not an error: warnings, or lost rows.
pub(crate) const STATUS_WARNING: u8 = 3;
/// A check found errors, or differences between things that should be equal.
pub(crate) const STATUS_ERROR: u8 = 4;
/// The time was too short to check everything.
pub(crate) const STATUS_INCOMPLETE: u8 = 5;

const STATUS_FAILED: u8 = 1;
pub(crate) const STATUS_USAGE: u8 = 2;
/// The status `EX_UNAVAILABLE` of `sysexits.h`, like the next three.
const STATUS_UNAVAILABLE: u8 = 69;
const STATUS_IO: u8 = 74;
const STATUS_TEMPORARY: u8 = 75;
const STATUS_NO_PERMISSION: u8 = 77;

/// The status of a command that did its work and found something. It is not an error: nothing is
/// printed for it.
#[derive(Debug, thiserror::Error)]
#[error("exit status {0}")]
pub(crate) struct NonZeroExit(pub(crate) u8);

impl NonZeroExit {
    /// Returns [`STATUS_ERROR`] if a difference was found.
    pub(crate) fn if_differing(differs: bool) -> anyhow::Result<()> {
        if differs { Err(Self(STATUS_ERROR).into()) } else { Ok(()) }
    }
}

/// Returns the status of a code for scripts: a number of `sysexits.h` if one fits.
pub(crate) fn exit_status(code: ErrorCode) -> u8 {
    use ErrorCode as E;
    match code {
        E::InvalidArgument => STATUS_USAGE,
        E::ServerDamaged
        | E::Unavailable
        | E::UnexpectedResponse
        | E::Unreachable
        | E::Untrusted => STATUS_UNAVAILABLE,
        E::DiskFull | E::QuotaExceeded | E::ServerDiskFull | E::StorageFailed => STATUS_IO,
        E::Busy | E::DataDirectoryInUse | E::Timeout | E::TooManyAttempts => STATUS_TEMPORARY,
        E::AdminDisabled
        | E::InvalidToken
        | E::PermissionDenied
        | E::ReadOnly
        | E::RegistrationClosed
        | E::WrongPassword => STATUS_NO_PERMISSION,
        _ => STATUS_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_the_codes_of_each_status() {
        let document = include_str!("../../../../docs/reference/formats/4-errors.md");
        for status in
            [STATUS_USAGE, STATUS_UNAVAILABLE, STATUS_IO, STATUS_TEMPORARY, STATUS_NO_PERMISSION]
        {
            let codes = ErrorCode::ALL.iter().filter(|code| exit_status(**code) == status);
            let codes: Vec<_> = codes.map(|code| format!("`{code}`")).collect();
            let row = format!("| {status} | {} |", codes.join(", "));
            assert!(document.contains(&row), "{row}");
        }
    }
}

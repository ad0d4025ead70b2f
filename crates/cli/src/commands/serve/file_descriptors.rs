//! Computes the number of connections that fit into the system's limit of file descriptors.

use crate::output::CommandError;
use anyhow::ensure;
use protocol::ErrorCode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the accounts, the listener, the standard streams and the runtime.
const PROGRAM_COUNT: usize = 64;
/// Descriptors of an open vault: its file, its WAL and the WAL's index.
const VAULT_COUNT: usize = 3;

/// Returns the number of connections: the requested number, which must fit, or else as many of the
/// default as fit. Descriptors of vaults and of mail connections are reserved.
pub(crate) fn connections_that_fit(
    asked: Option<usize>,
    default: usize,
    vaults_max: usize,
    mail_connections_max: usize,
) -> anyhow::Result<usize> {
    let reserve = PROGRAM_COUNT + VAULT_COUNT * vaults_max + mail_connections_max;
    let wanted = asked.unwrap_or(default);
    let limit = raise_limit(wanted.saturating_add(reserve));
    // With a low limit, vaults are rarely all open; the connections get at least a quarter of it.
    let fits = limit.saturating_sub(reserve).max(limit / 4);
    ensure!(
        asked.is_none_or(|asked| asked <= fits),
        too_few(wanted, wanted.saturating_add(reserve), limit, fits)
    );
    Ok(wanted.min(fits))
}

fn too_few(wanted: usize, needed: usize, limit: usize, fits: usize) -> CommandError {
    let message = format!(
        "--connections-max {wanted} needs {needed} file descriptors, but the system allows {limit}"
    );
    CommandError::new(ErrorCode::InvalidSettings, message).with_hint(format!(
        "raise the limit (`ulimit -n`, systemd's LimitNOFILE), or pass at most {fits}"
    ))
}

/// Raises the process's own limit towards `wanted`, as far as the system allows; returns the limit.
pub(crate) fn raise_limit(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let count = |limit: Option<u64>| {
        limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    };
    let raised = wanted.min(count(maximum));
    if count(current) >= raised {
        return count(current);
    }
    let raising = setrlimit(Resource::Nofile, Rlimit { current: Some(raised as u64), maximum });
    // A sandbox may forbid this: then the current limit stays.
    if raising.is_ok() { raised } else { count(current) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_fits_or_is_refused() {
        assert_eq!(connections_that_fit(Some(1), 10, 0, 0).unwrap(), 1);
        assert_eq!(connections_that_fit(None, 2, 1, 0).unwrap(), 2);
        let limit = raise_limit(usize::MAX);
        let fits = connections_that_fit(None, usize::MAX, 10, 6).unwrap();
        assert_eq!(fits, limit.saturating_sub(100).max(limit / 4));
        if limit < usize::MAX {
            connections_that_fit(Some(limit), 10, 10, 0).unwrap_err();
        }
    }
}

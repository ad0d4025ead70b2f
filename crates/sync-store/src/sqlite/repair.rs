//! Repairs a vault of which only some rows could be read: its sums become those of its messages.
//!
//! Its devices see that the fingerprints differ from theirs and send the missing messages.
//!
//! # Not here
//! - Detecting damage and copying the rows → `engine::DamagePolicy`.

use std::path::PathBuf;
use std::sync::Arc;

use engine::DamagePolicy;
use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::sqlite::{gateway, loss, messages, rows, windows};
use crate::vault::gateway::RepairStateFn;

/// The damage that was found in a vault's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultDamage {
    /// A description of the damage.
    pub found: String,
    /// The path of the quarantined file.
    pub quarantined_path: PathBuf,
}

/// Returns the policy that repairs vaults and rebuilds their gateway states with `repair_state`.
pub(super) fn policy(repair_state: RepairStateFn) -> DamagePolicy {
    DamagePolicy::Repair(Arc::new(move |db| {
        repair(db, repair_state).map_err(|error| match error {
            Error::Engine(error) => error,
            error => engine::Error::Application { source: Box::new(error) },
        })
    }))
}

fn repair(db: &Connection, repair_state: RepairStateFn) -> Result<()> {
    let before = rows::summary(db)?;
    // Sequence numbers that devices know must not be given to other messages.
    db.execute(
        "UPDATE vault_summary SET last_seq = max(
             last_seq,
             (SELECT coalesce(max(seq), 0) FROM message),
             (SELECT coalesce(max(cursor), 0) FROM device)
         )",
        [],
    )?;
    windows::rebuild(db)?;
    log_loss(db, loss::record_loss(db, before, rows::summary(db)?)?);
    let state = gateway::gateway_state(db)?;
    if !state.is_empty() {
        let repaired = repair_state(&state, &messages::timestamps(db)?);
        gateway::write_gateway_state(db, &repaired.map_err(Error::Declined)?)?;
    }
    Ok(())
}

fn log_loss(db: &Connection, lost_count: Option<u64>) {
    // The file that is being written will replace the vault's file.
    let path = db.path().map(|path| path.trim_end_matches(".compacting"));
    match lost_count {
        Some(0) => {}
        Some(count) => tracing::warn!(path, count, "messages of a damaged vault are unreadable"),
        None => tracing::warn!(
            path,
            "messages of a damaged vault are unreadable; their number is unknown"
        ),
    }
}

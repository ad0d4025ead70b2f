//! The room that each account has for further mail.
//!
//! A mail vault is locked while mail arrives for it, so the size of its mail is that of its files.
//!
//! # Invariants
//! - No more is accepted than the limits allow, by what was last read plus what was accepted since.
//! - A usage is kept for [`USAGE_AGE_MS_MAX`], so recipients in quick succession cost one query.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use accounts::{MailRecipient, VaultId};
use engine::clock;
use mail_protocol::LmtpRefusal;
use mail_store::MailSpool;

use crate::error::Result;
use crate::limits::{WAITING_BYTES_MAX, WAITING_COUNT_MAX};

/// The time, in milliseconds, after which the usage of an account is read again. Until then,
/// deliveries that other processes have filed or removed are still counted.
const USAGE_AGE_MS_MAX: u64 = 1_000;

/// The number of accounts whose mail is remembered. If it is exceeded, all are forgotten.
const USAGES_COUNT_MAX: usize = 10_000;

/// The room of all accounts.
pub(crate) struct MailRoom {
    data: PathBuf,
    /// The limit of accounts that have none of their own, in bytes.
    bytes_max: u64,
    usages: Mutex<HashMap<VaultId, MailUsage>>,
}

/// The mail of one account.
#[derive(Clone, Copy)]
struct MailUsage {
    seen_ms: u64,
    waiting_count: u64,
    waiting_bytes: u64,
    /// The size of the mail vault's files.
    file_bytes: u64,
}

impl MailRoom {
    pub(crate) fn new(data: &Path, bytes_max: u64) -> Self {
        Self { data: data.to_owned(), bytes_max, usages: Mutex::default() }
    }

    /// Takes the room for a sealed delivery of `bytes` bytes. Returns the refusal if there is not
    /// enough. Without a delivery, only checks whether there is any room.
    pub(crate) fn take(
        &self,
        spool: &MailSpool,
        recipient: &MailRecipient,
        bytes: Option<u64>,
    ) -> Result<Option<LmtpRefusal>> {
        let now_ms = clock::now_ms();
        let seen = self.usage(spool, &recipient.vault, now_ms)?;
        let mut usages = self.lock();
        if usages.len() >= USAGES_COUNT_MAX && !usages.contains_key(&recipient.vault) {
            usages.clear();
        }
        let usage = usages.entry(recipient.vault.clone()).or_insert(seen);
        if !usage.is_fresh(now_ms) {
            *usage = seen;
        }
        let bytes_max = recipient.mail_bytes_max.unwrap_or(self.bytes_max);
        let added = bytes.unwrap_or(1);
        if added > bytes_max {
            return Ok(Some(LmtpRefusal::MailboxFullForGood));
        }
        let waiting_bytes = usage.waiting_bytes.saturating_add(added);
        let is_full = usage.waiting_count >= WAITING_COUNT_MAX
            || waiting_bytes > WAITING_BYTES_MAX
            || usage.file_bytes.saturating_add(waiting_bytes) > bytes_max;
        if is_full {
            return Ok(Some(LmtpRefusal::MailboxFull));
        }
        if bytes.is_some() {
            usage.waiting_count += 1;
            usage.waiting_bytes = waiting_bytes;
        }
        Ok(None)
    }

    /// Returns what was last read of an account's mail, or reads it again if that is too old.
    fn usage(&self, spool: &MailSpool, vault: &VaultId, now_ms: u64) -> Result<MailUsage> {
        let known = self.lock().get(vault).copied().filter(|usage| usage.is_fresh(now_ms));
        if let Some(usage) = known {
            return Ok(usage);
        }
        let waiting = spool.backlog(vault)?;
        let file = vault.path(&self.data);
        // Mail is accepted rather than refused if a file cannot be examined.
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        Ok(MailUsage {
            seen_ms: now_ms,
            waiting_count: waiting.count,
            waiting_bytes: waiting.bytes,
            file_bytes: size(&file).saturating_add(size(&file.with_extension("sqlite-wal"))),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VaultId, MailUsage>> {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MailUsage {
    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.seen_ms) < USAGE_AGE_MS_MAX
    }
}

//! The lines of the revocation list and their parser (Format 6).
//!
//! ```text
//! device <id>                                                            a device was revoked
//! account <vault>                                                        an account was removed
//! password <vault> <number> <memory_kib> <passes> <salt> <wrapped key>   a password was changed
//! mail_password <id>                                                     a mail password was removed
//! recovery_secret <vault> <number> <wrapped key>                         one was created
//! cancelled <checksum of an earlier line>                                that one was not done
//! ```
//!
//! # Invariants
//! - A line begins with a line feed and ends with its checksum. So the rest of a torn write becomes
//!   a damaged line of its own and never damages the next line.

use sha2::{Digest, Sha256};

use crate::credentials::kdf::KdfCost;
use crate::credentials::key_wrap::WrappedKey;
use crate::credentials::password_record::PasswordWrappedKey;
use crate::id::{DeviceId, MailPasswordId, VaultId, hex};

const CHECKSUM_BYTES: usize = 8;

/// A revocation that must stay in effect with an older accounts file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Revocation {
    Device(DeviceId),
    Account(VaultId),
    /// The new wrap of a password, after its number in the account (`account.wrap_number`).
    Password(VaultId, u32, PasswordWrappedKey),
    MailPassword(MailPasswordId),
    /// The wrap of a new recovery secret, after its number (`account.recovery_number`).
    RecoverySecret(VaultId, u32, WrappedKey),
}

impl Revocation {
    pub(crate) fn to_line(&self) -> String {
        line(&self.to_words())
    }

    /// Returns the line that records that this revocation was rolled back.
    pub(crate) fn to_cancelling_line(&self) -> String {
        line(&format!("cancelled {}", checksum(&self.to_words())))
    }

    fn to_words(&self) -> String {
        match self {
            Self::Device(device) => format!("device {device}"),
            Self::Account(vault) => format!("account {vault}"),
            Self::Password(vault, number, wrap) => {
                let (memory_kib, passes) = wrap.cost.to_columns();
                let (salt, key) = (hex(&wrap.salt), hex(&wrap.wrapped_key));
                format!("password {vault} {number} {memory_kib} {passes} {salt} {key}")
            }
            Self::MailPassword(id) => format!("mail_password {id}"),
            Self::RecoverySecret(vault, number, wrapped_key) => {
                format!("recovery_secret {vault} {number} {}", hex(wrapped_key))
            }
        }
    }
}

fn line(words: &str) -> String {
    format!("\n{words} {}", checksum(words))
}

fn checksum(words: &str) -> String {
    hex(&Sha256::digest(words)[..CHECKSUM_BYTES])
}

/// A list as it was read.
pub struct ParsedRevocations {
    /// The revocations in the order of the list, without cancelled ones.
    pub(crate) in_effect: Vec<Revocation>,
    damaged_lines: Vec<usize>,
}

impl ParsedRevocations {
    /// Parses a list. Damaged lines are skipped and do not affect the others.
    pub fn parse(list: &[u8]) -> Self {
        let mut listed: Vec<(&str, Revocation)> = Vec::new();
        let mut damaged_lines = Vec::new();
        for (number, line) in (1..).zip(list.split(|byte| *byte == b'\n')) {
            match RevocationLine::parse(line) {
                Some(RevocationLine::Empty) => {}
                Some(RevocationLine::Revocation(checksum, revocation)) => {
                    listed.push((checksum, revocation));
                }
                Some(RevocationLine::Cancelled(cancelled)) => {
                    let last = listed.iter().rposition(|(checksum, _)| *checksum == cancelled);
                    last.map(|at| listed.remove(at));
                }
                None => damaged_lines.push(number),
            }
        }
        let in_effect = listed.into_iter().map(|(_, revocation)| revocation).collect();
        Self { in_effect, damaged_lines }
    }

    /// Returns the number of devices, accounts and passwords on the list.
    pub fn count(&self) -> usize {
        self.in_effect.len()
    }

    /// Returns the numbers of the damaged lines, from 1.
    pub fn damaged_lines(&self) -> &[usize] {
        &self.damaged_lines
    }
}

enum RevocationLine<'l> {
    Empty,
    /// A revocation, after the checksum of its line.
    Revocation(&'l str, Revocation),
    /// A cancellation, with the checksum of the cancelled line.
    Cancelled(&'l str),
}

impl<'l> RevocationLine<'l> {
    fn parse(line: &'l [u8]) -> Option<Self> {
        if line.is_empty() {
            return Some(Self::Empty);
        }
        let (words, found) = str::from_utf8(line).ok()?.rsplit_once(' ')?;
        if found != checksum(words) {
            return None;
        }
        let revocation = match *words.split(' ').collect::<Vec<_>>() {
            ["cancelled", checksum] => return Some(Self::Cancelled(checksum)),
            ["device", device] => Revocation::Device(device.parse().ok()?),
            ["mail_password", id] => Revocation::MailPassword(id.parse().ok()?),
            ["account", vault] => Revocation::Account(vault.parse().ok()?),
            ["password", vault, number, memory_kib, passes, salt, key] => {
                let (memory_kib, passes) = (memory_kib.parse().ok()?, passes.parse().ok()?);
                let wrap = PasswordWrappedKey {
                    cost: KdfCost::from_columns(memory_kib, passes).ok()?,
                    salt: from_hex(salt)?,
                    wrapped_key: from_hex(key)?,
                };
                Revocation::Password(vault.parse().ok()?, number.parse().ok()?, wrap)
            }
            ["recovery_secret", vault, number, key] => Revocation::RecoverySecret(
                vault.parse().ok()?,
                number.parse().ok()?,
                from_hex(key)?,
            ),
            _ => return None,
        };
        Some(Self::Revocation(found, revocation))
    }
}

fn from_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES || !text.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revocations() -> Vec<Revocation> {
        let vault = VaultId::generate();
        let cost = KdfCost::DEFAULT;
        let wrapped_key = [9; size_of::<WrappedKey>()];
        let wrap = PasswordWrappedKey { cost, salt: [7; 16], wrapped_key };
        vec![
            Revocation::Device(DeviceId::generate()),
            Revocation::Password(vault.clone(), 3, wrap),
            Revocation::MailPassword(MailPasswordId::generate()),
            Revocation::RecoverySecret(vault.clone(), 2, wrapped_key),
            Revocation::Account(vault),
        ]
    }

    fn list(revocations: &[Revocation]) -> Vec<u8> {
        revocations.iter().map(Revocation::to_line).collect::<String>().into_bytes()
    }

    #[test]
    fn a_list_reads_as_it_was_written() {
        let written = revocations();
        let read = ParsedRevocations::parse(&list(&written));
        assert!(read.in_effect == written);
        assert_eq!((read.count(), read.damaged_lines()), (5, &[][..]));
    }

    #[test]
    fn a_torn_line_takes_no_other_with_it() {
        let written = revocations();
        for torn in &written {
            let whole = torn.to_line();
            for length in 1..whole.len() {
                let list = [&list(&written), &whole.as_bytes()[..length], &list(&written)].concat();
                let read = ParsedRevocations::parse(&list);
                assert!(read.in_effect == [&written[..], &written].concat(), "{length}");
                // A line feed alone is not a damaged line.
                let damaged: &[usize] = if length == 1 { &[] } else { &[7] };
                assert_eq!(read.damaged_lines(), damaged, "{length}");
            }
        }
    }

    #[test]
    fn whatever_byte_is_damaged_other_lines_count_and_none_is_taken_for_another() {
        let written = revocations();
        let sound = list(&written);
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut damaged = sound.clone();
                damaged[at] ^= 1 << bit;
                let read = ParsedRevocations::parse(&damaged);
                let is_of_list = |found: &Revocation| written.contains(found);
                assert!(read.in_effect.iter().all(is_of_list), "{at}, {bit}");
                // If two lines become one, both are lost.
                let is_end = sound[at] == b'\n' && at > 0;
                assert!(read.count() >= if is_end { 3 } else { 4 }, "{at}, {bit}");
                assert!(!read.damaged_lines().is_empty(), "{at}, {bit}");
            }
        }
    }

    #[test]
    fn what_was_cancelled_does_not_count_unless_it_was_done_later() {
        let written = revocations();
        let (last, others) = written.split_last().unwrap();
        let mut list = list(&written);
        list.extend(last.to_cancelling_line().bytes());
        assert!(ParsedRevocations::parse(&list).in_effect == others);
        list.extend(last.to_line().bytes());
        assert!(ParsedRevocations::parse(&list).in_effect == written);
    }
}

//! What the gateway keeps in a vault's record (`docs/formats/15-actual.md`).
//!
//! ```text
//! budget's record = 01 length header trie       length: LEB128, of the header
//! owner's record  = 01 header                   headers are protobuf
//! ```
//! The trie is last, so that a sync reads the header without it: [`Budget::decode`] hands out the
//! trie's bytes for [`Trie::decode`](crate::trie::Trie::decode) or
//! [`Trie::write_json_of`](crate::trie::Trie::write_json_of).
//!
//! # Not here
//! - Which account and vault: the gateway.

use std::collections::BTreeMap;

use prost::Message;

/// The version of both records.
const VERSION: u8 = 1;
/// The lowest format of a budget that syncs.
const SYNC_FORMAT: f64 = 2.0;

/// A record that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamagedRecord {
    /// Written by a newer Warren.
    #[error("the record has version {0}, this Warren knows {VERSION}; use a newer one")]
    Version(u8),
    /// Not what was written.
    #[error("the record is damaged: {0}")]
    Header(#[from] prost::DecodeError),
}

/// A budget, apart from its messages. Texts are as the app sent them.
#[derive(Clone, PartialEq, Message)]
pub struct Budget {
    /// The budget's id for ever.
    #[prost(string, tag = "1")]
    pub file_id: String,
    /// Its messages since the last reset; `None` until the next upload.
    #[prost(string, optional, tag = "2")]
    pub group_id: Option<String>,
    /// As shown to people.
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    /// Of the file, as the app calls it.
    #[prost(string, optional, tag = "4")]
    pub format: Option<String>,
    /// JSON: how the file is encrypted.
    #[prost(string, optional, tag = "5")]
    pub encrypt_meta: Option<String>,
    /// The registered key.
    #[prost(message, required, tag = "6")]
    pub key: BudgetKey,
    /// Whether a user deleted it.
    #[prost(bool, tag = "7")]
    pub is_deleted: bool,
    /// The uploaded file.
    #[prost(message, optional, tag = "8")]
    pub file: Option<BudgetFile>,
    /// Milliseconds since 1970.
    #[prost(uint64, tag = "9")]
    pub created_ms: u64,
}

/// What the server knows of the key that apps encrypt with: never the key.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BudgetKey {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub id: Option<String>,
    /// For deriving it from the user's password.
    #[prost(string, optional, tag = "2")]
    pub salt: Option<String>,
    /// JSON: something encrypted, to try a password on.
    #[prost(string, optional, tag = "3")]
    pub test: Option<String>,
}

/// A budget's file, which is in the vault's parts.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct BudgetFile {
    /// The number under which its parts are.
    #[prost(uint64, tag = "1")]
    pub blob: u64,
    /// Its length.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// Milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub modified_ms: u64,
}

impl Budget {
    /// Appends the record up to the trie; the trie's bytes must follow.
    pub fn encode_header(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        self.encode_length_delimited(out).expect("a vector has room");
    }

    /// The budget and the trie's bytes; `None` if the record is empty: there is no budget.
    pub fn decode_record(record: &[u8]) -> Result<Option<(Self, &[u8])>, DamagedRecord> {
        let Some(mut rest) = after_version(record)? else { return Ok(None) };
        let budget = Self::decode_length_delimited(&mut rest)?;
        Ok(Some((budget, rest)))
    }

    /// Whether its file is of a format from before syncing, or of none that is known. A text that
    /// is no number counts as recent, as the published server has it.
    pub fn is_old_format(&self) -> bool {
        let number = |format: &str| format.trim().parse::<f64>();
        let is_old = |format| number(format).is_ok_and(|number| number < SYNC_FORMAT);
        self.format.as_deref().is_none_or(is_old)
    }
}

/// The one user, in the account's own vault.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Owner {
    /// A UUID.
    #[prost(string, tag = "1")]
    pub user_id: String,
    /// The server's preferences.
    #[prost(btree_map = "string, string", tag = "2")]
    pub prefs: BTreeMap<String, String>,
}

impl Owner {
    /// The whole record.
    pub fn encode_record(&self) -> Vec<u8> {
        let mut record = vec![VERSION];
        self.encode(&mut record).expect("a vector has room");
        record
    }

    /// `None` if the record is empty: there is no user.
    pub fn decode_record(record: &[u8]) -> Result<Option<Self>, DamagedRecord> {
        let Some(rest) = after_version(record)? else { return Ok(None) };
        Ok(Some(Self::decode(rest)?))
    }
}

fn after_version(record: &[u8]) -> Result<Option<&[u8]>, DamagedRecord> {
    match record {
        [] => Ok(None),
        [VERSION, rest @ ..] => Ok(Some(rest)),
        [version, ..] => Err(DamagedRecord::Version(*version)),
    }
}

//! Encodes the gateway state that a vault stores for Actual
//! (`docs/reference/formats/15-actual.md`).
//!
//! ```text
//! budget's record = 01 length header trie       length: LEB128, of the header
//! owner's record  = 01 header                   headers are protobuf
//! ```
//! The trie comes last, so that a sync can read the header without it:
//! [`BudgetState::decode_record`] returns the trie's bytes for
//! [`MerkleTrie::decode`](crate::trie::MerkleTrie::decode) or
//! [`MerkleTrie::write_json_of`](crate::trie::MerkleTrie::write_json_of).
//!
//! # Not here
//! - The account and the vault of a state: the gateway finds them.

use std::collections::BTreeMap;

use crdt::Timestamp;
use prost::Message;
use sync_store::BoxError;

use crate::trie::MerkleTrie;

/// The version of both states.
const VERSION: u8 = 1;
/// The lowest format of a budget that syncs.
const SYNC_FORMAT: f64 = 2.0;

/// An error for a gateway state that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamagedGatewayState {
    /// A newer Warren wrote the state.
    #[error(
        "the budget's state has version {0}, but this version of Warren supports only version \
         {VERSION}; update Warren"
    )]
    Version(u8),
    /// The state was altered after it was written.
    #[error("the budget's state is damaged: {0}")]
    Header(#[from] prost::DecodeError),
}

/// The state of a budget, without its messages. Texts are stored as the app sent them.
#[derive(Clone, PartialEq, Message)]
pub struct BudgetState {
    /// The permanent id of the budget.
    #[prost(string, tag = "1")]
    pub file_id: String,
    /// The id of the budget's messages since the last reset; `None` until the next upload.
    #[prost(string, optional, tag = "2")]
    pub group_id: Option<String>,
    /// The name that people see.
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    /// The format of the file, in the app's terms.
    #[prost(string, optional, tag = "4")]
    pub format: Option<String>,
    /// The parameters with which the file is encrypted, as JSON.
    #[prost(string, optional, tag = "5")]
    pub encrypt_meta: Option<String>,
    /// The registered key.
    #[prost(message, required, tag = "6")]
    pub key: BudgetKey,
    /// Whether a user deleted the budget.
    #[prost(bool, tag = "7")]
    pub is_deleted: bool,
    /// The uploaded file.
    #[prost(message, optional, tag = "8")]
    pub file: Option<BudgetFile>,
    /// The time of creation in milliseconds since 1970.
    #[prost(uint64, tag = "9")]
    pub created_ms: u64,
}

/// Data about the key that apps encrypt with, but never the key itself.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BudgetKey {
    /// The id of the key.
    #[prost(string, optional, tag = "1")]
    pub id: Option<String>,
    /// The salt to derive the key from the user's password.
    #[prost(string, optional, tag = "2")]
    pub salt: Option<String>,
    /// An encrypted sample to check a password with, as JSON.
    #[prost(string, optional, tag = "3")]
    pub test: Option<String>,
}

/// A budget's file, which is stored in the vault's chunks.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct BudgetFile {
    /// The id of the blob that consists of the file's chunks.
    #[prost(uint64, tag = "1")]
    pub blob: u64,
    /// The length of the file.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// The time of the upload in milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub modified_ms: u64,
}

impl BudgetState {
    /// Appends the state up to the trie; the trie's bytes must follow.
    pub fn encode_header(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        self.encode_length_delimited(out).expect("a vector has room");
    }

    /// Decodes the budget and returns the trie's bytes; `None` if the state is empty: there is no
    /// budget.
    pub fn decode_record(record: &[u8]) -> Result<Option<(Self, &[u8])>, DamagedGatewayState> {
        let Some(mut rest) = after_version(record)? else { return Ok(None) };
        let budget = Self::decode_length_delimited(&mut rest)?;
        Ok(Some((budget, rest)))
    }

    /// Returns whether the file has a format from before syncing, or none. Like the published
    /// server, it treats a text that is not a number as a recent format.
    pub fn is_old_format(&self) -> bool {
        let number = |format: &str| format.trim().parse::<f64>();
        let is_old = |format| number(format).is_ok_and(|number| number < SYNC_FORMAT);
        self.format.as_deref().is_none_or(is_old)
    }
}

/// The state of the single user, in the account's own vault.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct OwnerState {
    /// The user's id, a UUID.
    #[prost(string, tag = "1")]
    pub user_id: String,
    /// The server's preferences.
    #[prost(btree_map = "string, string", tag = "2")]
    pub prefs: BTreeMap<String, String>,
}

impl OwnerState {
    /// Encodes the whole state.
    pub fn encode_record(&self) -> Vec<u8> {
        let mut record = vec![VERSION];
        self.encode(&mut record).expect("a vector has room");
        record
    }

    /// Decodes the state; `None` if it is empty: there is no user.
    pub fn decode_record(record: &[u8]) -> Result<Option<Self>, DamagedGatewayState> {
        let Some(rest) = after_version(record)? else { return Ok(None) };
        Ok(Some(Self::decode(rest)?))
    }
}

/// Rebuilds the trie of a state from the vault's timestamps. A state that cannot be read is
/// unchanged.
pub fn repair_gateway_state(record: &[u8], timestamps: &[Timestamp]) -> Result<Vec<u8>, BoxError> {
    let Ok(Some((_, trie))) = BudgetState::decode_record(record) else {
        return Ok(record.to_vec());
    };
    if MerkleTrie::decode(trie).is_err() {
        return Ok(record.to_vec());
    }
    let mut repaired = MerkleTrie::new();
    for timestamp in timestamps {
        repaired.insert(*timestamp);
    }
    repaired.prune();
    Ok(with_trie(record, trie, &repaired))
}

/// Replaces the trie of a budget's state; `old` is the state's last bytes.
pub(crate) fn with_trie(record: &[u8], old: &[u8], new: &MerkleTrie) -> Vec<u8> {
    let mut record = record[..record.len() - old.len()].to_vec();
    new.encode(&mut record);
    record
}

fn after_version(record: &[u8]) -> Result<Option<&[u8]>, DamagedGatewayState> {
    match record {
        [] => Ok(None),
        [VERSION, rest @ ..] => Ok(Some(rest)),
        [version, ..] => Err(DamagedGatewayState::Version(*version)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::trie::MerkleTrie;

    fn text() -> impl Strategy<Value = Option<String>> {
        option::of(prop_oneof![Just(String::new()), any::<String>()])
    }

    fn budgets() -> impl Strategy<Value = BudgetState> {
        let key =
            (text(), text(), text()).prop_map(|(id, salt, test)| BudgetKey { id, salt, test });
        let file = any::<[u64; 3]>();
        let file =
            file.prop_map(|[blob, bytes, modified_ms]| BudgetFile { blob, bytes, modified_ms });
        let texts = (any::<String>(), text(), text(), text(), text());
        (texts, key, any::<bool>(), option::of(file), any::<u64>()).prop_map(
            |(
                (file_id, group_id, name, format, encrypt_meta),
                key,
                is_deleted,
                file,
                created_ms,
            )| {
                BudgetState {
                    file_id,
                    group_id,
                    name,
                    format,
                    encrypt_meta,
                    key,
                    is_deleted,
                    file,
                    created_ms,
                }
            },
        )
    }

    fn tries() -> impl Strategy<Value = MerkleTrie> {
        vec(0..=crdt::Timestamp::MILLIS_MAX, 0..5).prop_map(|moments| {
            let mut trie = MerkleTrie::new();
            for millis in moments {
                trie.insert(crdt::Timestamp::new(millis, 0, crdt::NodeId(1)).unwrap());
            }
            trie
        })
    }

    fn record(budget: &BudgetState, trie: &MerkleTrie) -> Vec<u8> {
        let mut record = Vec::new();
        budget.encode_header(&mut record);
        trie.encode(&mut record);
        record
    }

    #[test]
    fn the_documented_bytes() {
        let budget = BudgetState {
            file_id: "f".to_owned(),
            group_id: Some(String::new()),
            file: Some(BudgetFile { blob: 1, bytes: 2, modified_ms: 3 }),
            created_ms: 4,
            ..BudgetState::default()
        };
        let expected = b"\x01\x11\x0a\x01f\x12\0\x32\0\x42\x06\x08\x01\x10\x02\x18\x03\x48\x04\x10";
        assert_eq!(record(&budget, &MerkleTrie::new()), expected);
        let prefs = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let owner = OwnerState { user_id: "u".to_owned(), prefs };
        assert_eq!(owner.encode_record(), b"\x01\x0a\x01u\x12\x06\x0a\x01a\x12\x01b");
    }

    #[test]
    fn an_empty_record_is_nothing_and_another_version_is_named() {
        assert_eq!(BudgetState::decode_record(b""), Ok(None));
        assert_eq!(OwnerState::decode_record(b""), Ok(None));
        assert_eq!(BudgetState::decode_record(b"\x02\0\x10"), Err(DamagedGatewayState::Version(2)));
        assert_eq!(OwnerState::decode_record(b"\x02"), Err(DamagedGatewayState::Version(2)));
    }

    #[test]
    fn formats_are_compared_as_numbers() {
        let is_old = |format: Option<&str>| {
            BudgetState { format: format.map(str::to_owned), ..BudgetState::default() }
                .is_old_format()
        };
        assert!([None, Some("1"), Some("1.9"), Some(" 0 "), Some("-3")].into_iter().all(is_old));
        assert!(![Some("2"), Some("2.0"), Some("10"), Some("two")].into_iter().any(is_old));
    }

    proptest! {
        #[test]
        fn a_budget_round_trips_and_no_part_of_it_passes(budget in budgets(), trie in tries()) {
            let record = record(&budget, &trie);
            let (found, rest) = BudgetState::decode_record(&record).unwrap().unwrap();
            prop_assert_eq!(found, budget);
            prop_assert_eq!(&MerkleTrie::decode(rest).unwrap(), &trie);
            for length in 1..record.len() {
                let found = BudgetState::decode_record(&record[..length]);
                let is_whole =
                    found.is_ok_and(|budget| MerkleTrie::decode(budget.unwrap().1).is_ok());
                prop_assert!(!is_whole, "{} of {} bytes", length, record.len());
            }
        }

        #[test]
        fn a_repaired_budget_has_the_trie_of_its_messages(budget in budgets(), trie in tries()) {
            let timestamp = |ms| Timestamp::new(ms, 0, crdt::NodeId(7)).unwrap();
            let timestamps = [1_000, 90_000, 1_753_000_000_000].map(timestamp);
            let mut expected = MerkleTrie::new();
            for timestamp in timestamps {
                expected.insert(timestamp);
            }
            expected.prune();
            let repaired = repair_gateway_state(&record(&budget, &trie), &timestamps).unwrap();
            prop_assert_eq!(repaired, record(&budget, &expected));
        }

        #[test]
        fn an_owner_round_trips(
            user_id in "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            prefs in btree_map(".*", ".*", 0..4),
        ) {
            let owner = OwnerState { user_id, prefs };
            let record = owner.encode_record();
            prop_assert_eq!(repair_gateway_state(&record, &[]).unwrap(), record, "it has no messages");
            prop_assert_eq!(OwnerState::decode_record(&owner.encode_record()), Ok(Some(owner)));
        }

        #[test]
        fn altered_bytes_are_refused_or_read_as_something(
            budget in budgets(),
            trie in tries(),
            index in any::<prop::sample::Index>(),
            byte: u8,
        ) {
            let mut altered = record(&budget, &trie);
            let index = index.index(altered.len());
            altered[index] = byte;
            if let Ok(Some((found, rest))) = BudgetState::decode_record(&altered)
                && let Ok(trie) = MerkleTrie::decode(rest)
            {
                let again = record(&found, &trie);
                let (same, _) = BudgetState::decode_record(&again).unwrap().unwrap();
                prop_assert_eq!(same, found);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_a_record(mut bytes in vec(any::<u8>(), 0..80)) {
            bytes.insert(0, VERSION);
            if let Ok(owner) = OwnerState::decode_record(&bytes) {
                prop_assert_eq!(OwnerState::decode_record(&owner.clone().unwrap().encode_record()), Ok(owner));
            }
            if let Ok(budget) = BudgetState::decode_record(&bytes) {
                prop_assert!(bytes.ends_with(budget.unwrap().1));
            }
        }
    }
}

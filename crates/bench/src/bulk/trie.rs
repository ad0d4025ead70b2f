//! Implements the published trie, kept as one JSON document: minutes in base 3, a hash at each
//! node.
//!
//! The hash is FNV-1a, not the original's Murmur: compared with the document, either costs almost
//! nothing.

use serde::{Deserialize, Serialize};

/// The number of ternary digits of a minute, which suffices until 2051.
const DIGITS: u32 = 16;
const MINUTE_MS: u64 = 60_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct JsonTrie {
    #[serde(rename = "0", skip_serializing_if = "Option::is_none", default)]
    zero: Option<Box<JsonTrie>>,
    #[serde(rename = "1", skip_serializing_if = "Option::is_none", default)]
    one: Option<Box<JsonTrie>>,
    #[serde(rename = "2", skip_serializing_if = "Option::is_none", default)]
    two: Option<Box<JsonTrie>>,
    #[serde(default)]
    hash: u32,
}

impl JsonTrie {
    /// Adds a new timestamp.
    pub(super) fn insert(&mut self, millis: u64, text: &str) {
        let hash = text
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let minute = millis / MINUTE_MS;
        self.hash ^= hash;
        let mut node = self;
        for place in (0..DIGITS).rev() {
            let child = match minute / 3_u64.pow(place) % 3 {
                0 => &mut node.zero,
                1 => &mut node.one,
                _ => &mut node.two,
            };
            node = child.get_or_insert_default();
            node.hash ^= hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_the_trie() {
        let mut trie = JsonTrie::default();
        assert_eq!(serde_json::to_string(&trie).unwrap(), r#"{"hash":0}"#);
        for (millis, text) in [(1_750_000_000_000, "a"), (1_750_000_060_000, "b")] {
            trie.insert(millis, text);
        }
        let document = serde_json::to_string(&trie).unwrap();
        assert_eq!(serde_json::from_str::<JsonTrie>(&document).unwrap(), trie);
        let before = trie.clone();
        trie.insert(1_750_000_000_000, "c");
        trie.insert(1_750_000_000_000, "c");
        assert_eq!(trie, before, "twice is not at all");
    }
}

//! Encodes the trie as bytes in a gateway state (`docs/reference/formats/15-actual.md`).
//!
//! ```text
//! trie = 10 | node                     10: no messages
//! node = tag [hash] node{0..3}         hash: 4 bytes, big-endian
//! tag  = bit 0, 1, 2: it has child 0, 1, 2; bit 3: hash follows
//! ```
//! Without bit 3 the hash is the XOR of the children's. This is true for every node that lost no
//! child to pruning and at which no key ends, so most nodes take one byte.
//!
//! # Invariants
//! - A trie has one encoding; the decoder accepts no other, and no prefix of one.

use super::json::TrieJsonWriter;
use super::{KEY_DIGITS_MAX, MerkleTrie, NONE, TrieVisitor};

/// The tag of the trie without messages.
const EMPTY: u8 = 0x10;
/// The bits of a tag that mark the children.
const CHILDREN: u8 = 0x07;
/// The bit of a tag that says that the hash follows.
const HAS_HASH: u8 = 0x08;

/// An error for bytes that do not encode a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored trie is damaged")]
pub struct DamagedTrie;

impl MerkleTrie {
    /// Appends the encoded trie.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.nodes.is_empty() {
            out.push(EMPTY);
        } else {
            self.encode_node(0, out);
        }
    }

    fn encode_node(&self, index: usize, out: &mut Vec<u8>) {
        let node = self.nodes[index];
        let (mut tag, mut sum) = (0, 0);
        for (digit, child) in node.children.into_iter().enumerate() {
            if child != NONE {
                tag |= 1 << digit;
                sum ^= self.nodes[child as usize].hash;
            }
        }
        if sum == node.hash {
            out.push(tag);
        } else {
            out.push(tag | HAS_HASH);
            out.extend_from_slice(&node.hash.to_be_bytes());
        }
        for child in node.children.into_iter().filter(|child| *child != NONE) {
            self.encode_node(child as usize, out);
        }
    }

    /// Decodes all bytes that [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedTrie> {
        let mut trie = Self::new();
        walk(bytes, &mut trie)?;
        Ok(trie)
    }

    /// Appends the JSON of an encoded trie without building the trie; may append a part before an
    /// error.
    pub fn write_json_of(bytes: &[u8], out: &mut String) -> Result<(), DamagedTrie> {
        if walk(bytes, &mut TrieJsonWriter::new(out))?.is_none() {
            out.push_str("{}");
        }
        Ok(())
    }

    /// Returns the [`Self::root`] of an encoded trie without building the trie.
    pub fn root_of(bytes: &[u8]) -> Result<Option<i32>, DamagedTrie> {
        walk(bytes, &mut ())
    }
}

/// Reads an encoded trie, calls `visit` for each node, and returns the root's hash.
fn walk(mut bytes: &[u8], visit: &mut impl TrieVisitor) -> Result<Option<i32>, DamagedTrie> {
    if bytes == [EMPTY] {
        return Ok(None);
    }
    let root = read_node(&mut bytes, visit, None, 0)?;
    if bytes.is_empty() { Ok(Some(root)) } else { Err(DamagedTrie) }
}

fn read_node<V: TrieVisitor>(
    bytes: &mut &[u8],
    visit: &mut V,
    parent: Option<(V::Place, u8)>,
    depth: usize,
) -> Result<i32, DamagedTrie> {
    let (tag, rest) = bytes.split_first().ok_or(DamagedTrie)?;
    *bytes = rest;
    let is_too_deep = depth == KEY_DIGITS_MAX && tag & CHILDREN != 0;
    if tag & !(CHILDREN | HAS_HASH) != 0 || is_too_deep {
        return Err(DamagedTrie);
    }
    let mut hash = None;
    if tag & HAS_HASH != 0 {
        let (four, rest) = bytes.split_first_chunk().ok_or(DamagedTrie)?;
        *bytes = rest;
        hash = Some(i32::from_be_bytes(*four));
    }
    let place = visit.open(parent);
    let mut sum = 0;
    for digit in (0..3).filter(|digit| tag & 1 << digit != 0) {
        sum ^= read_node(bytes, visit, Some((place, digit)), depth + 1)?;
    }
    if hash == Some(sum) {
        return Err(DamagedTrie);
    }
    let hash = hash.unwrap_or(sum);
    visit.close(place, hash);
    Ok(hash)
}

/// Ignores all nodes, if only the root's hash is needed.
impl TrieVisitor for () {
    type Place = ();
    fn open(&mut self, _: Option<((), u8)>) {}
    fn close(&mut self, (): (), _: i32) {}
}

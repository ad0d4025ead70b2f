//! The minute trie: what an app compares with the server's to see whether both have the same
//! messages.
//!
//! A message's key is its minute since 1970 in base 3, most significant digit first, without
//! leading zeros. Its hash is `XORed` into every node on the way, the root and the last included, so
//! that a node's hash stands for all messages under it. A key may end at a node that has children:
//! keys have different lengths.
//!
//! ```text
//! {"1":{"0":{"hash":-17},"2":{"hash":5},"hash":-22},"hash":-22}
//! ```
//!
//! # Invariants
//! - Every node has a hash; the trie without messages has no node and is `{}` in JSON.
//! - A path has at most [`KEY_DIGITS_MAX`] digits, so recursion is bounded by it.
//! - [`MerkleTrie::prune`] keeps every hash: a node's hash covers messages whose nodes are gone.
//!
//! # Not here
//! - Comparing two tries: apps do, servers do not.

mod binary;
mod json;
mod murmur;
#[cfg(test)]
mod tests;

use crdt::Timestamp;

pub use self::binary::DamagedTrie;
pub use self::json::ParseTrieError;

/// Digits of the key of the year 9999's last minute; 16 from 1997 to 2051.
pub const KEY_DIGITS_MAX: usize = 21;

/// How many children of a node pruning keeps.
const KEPT: usize = 2;

/// In [`TrieNode::children`]: there is none. The root is nobody's child.
const NONE: u32 = 0;

/// The hashes of a set of messages, by minute.
#[derive(Clone, Debug, Default)]
pub struct MerkleTrie {
    /// The root first. Pruning leaves nodes here that nothing refers to.
    nodes: Vec<TrieNode>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrieNode {
    hash: i32,
    /// Indexes, by digit.
    sub_vaults: [u32; 3],
}

impl MerkleTrie {
    /// That of no messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. The same one again takes it out: the caller inserts what is new.
    pub fn insert(&mut self, timestamp: Timestamp) {
        let hash = murmur::hash(&timestamp.to_text()).cast_signed();
        if self.nodes.is_empty() {
            self.nodes.push(TrieNode::default());
        }
        self.nodes[0].hash ^= hash;
        let mut index = 0;
        let (digits, first) = key(timestamp);
        for digit in &digits[first..] {
            index = self.child(index, usize::from(*digit));
            self.nodes[index].hash ^= hash;
        }
    }

    /// The child of a node, made if it is not there.
    fn child(&mut self, parent: usize, digit: usize) -> usize {
        if self.nodes[parent].sub_vaults[digit] == NONE {
            let index = u32::try_from(self.nodes.len()).expect("fewer nodes than minutes");
            self.nodes[parent].sub_vaults[digit] = index;
            self.nodes.push(TrieNode::default());
        }
        self.nodes[parent].sub_vaults[digit] as usize
    }

    /// Drops the lowest of three children everywhere, as the published server does once a request.
    /// A node whose hash is 0 stays as it is, with everything under it.
    pub fn prune(&mut self) {
        if !self.nodes.is_empty() {
            self.prune_node(0);
        }
    }

    fn prune_node(&mut self, index: usize) {
        if self.nodes[index].hash == 0 {
            return;
        }
        let mut kept = 0;
        for digit in (0..3).rev() {
            let sub_vault = self.nodes[index].sub_vaults[digit];
            if sub_vault == NONE {
                continue;
            }
            if kept == KEPT {
                self.nodes[index].sub_vaults[digit] = NONE;
            } else {
                kept += 1;
                self.prune_node(sub_vault as usize);
            }
        }
    }

    /// The hash of all messages that were inserted; `None` if there were none.
    pub fn root(&self) -> Option<i32> {
        self.nodes.first().map(|root| root.hash)
    }
}

impl PartialEq for MerkleTrie {
    /// Whether both look the same to an app, wherever the nodes lie: a trie has one encoding.
    fn eq(&self, other: &Self) -> bool {
        let [mut a, mut b] = [Vec::new(), Vec::new()];
        self.encode(&mut a);
        other.encode(&mut b);
        a == b
    }
}

/// What becomes of a trie's nodes on a walk: each opens, then its children in order, then it closes.
trait TrieVisitor {
    /// Whatever names an open node.
    type Place: Copy;
    /// Begins the root, or the child of an open node at a digit.
    fn open(&mut self, parent: Option<(Self::Place, u8)>) -> Self::Place;
    /// Ends a node.
    fn close(&mut self, place: Self::Place, hash: i32);
}

/// Into a trie without nodes.
impl TrieVisitor for MerkleTrie {
    type Place = usize;

    fn open(&mut self, parent: Option<(usize, u8)>) -> usize {
        let Some((parent, digit)) = parent else {
            self.nodes.push(TrieNode::default());
            return 0;
        };
        self.child(parent, usize::from(digit))
    }

    fn close(&mut self, place: usize, hash: i32) {
        self.nodes[place].hash = hash;
    }
}

/// The key's digits, from the index of the first that is written. Minute 0 has one digit.
fn key(timestamp: Timestamp) -> ([u8; KEY_DIGITS_MAX], usize) {
    let mut minute = timestamp.millis() / 60_000;
    let mut digits = [0; KEY_DIGITS_MAX];
    let mut first = KEY_DIGITS_MAX;
    loop {
        first -= 1;
        digits[first] = (minute % 3) as u8;
        minute /= 3;
        if minute == 0 {
            return (digits, first);
        }
    }
}

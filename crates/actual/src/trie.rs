//! The minute trie, which an app compares with the server's to find out whether both have the same
//! messages.
//!
//! A message's key is its minute since 1970 in base 3, most significant digit first, without
//! leading zeros. Its hash is `XORed` into every node of its path, including the root and the last
//! node, so a node's hash represents all messages below it. A key may end at a node that has
//! children, because keys differ in length.
//!
//! ```text
//! {"1":{"0":{"hash":-17},"2":{"hash":5},"hash":-22},"hash":-22}
//! ```
//!
//! # Invariants
//! - Every node has a hash; the trie without messages has no node and is `{}` in JSON.
//! - A path has at most [`KEY_DIGITS_MAX`] digits, which bounds the recursion.
//! - [`MerkleTrie::prune`] keeps every hash: a node's hash covers messages whose nodes are gone.
//!
//! # Not here
//! - Comparing two tries: only apps do this.

mod binary;
mod json;
mod murmur;
#[cfg(test)]
mod tests;

use crdt::Timestamp;

pub use self::binary::DamagedTrie;
pub use self::json::ParseTrieError;

/// The number of digits in the key of the last minute of the year 9999; 16 from 1997 to 2051.
pub const KEY_DIGITS_MAX: usize = 21;

/// The number of children that a node keeps when it is pruned.
const KEPT: usize = 2;

/// Marks a missing child in [`TrieNode::children`]; the root's index is free for this.
const NONE: u32 = 0;

/// The hashes of a set of messages, by minute.
#[derive(Clone, Debug, Default)]
pub struct MerkleTrie {
    /// All nodes, the root first. Pruning leaves nodes here that nothing refers to.
    nodes: Vec<TrieNode>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrieNode {
    hash: i32,
    /// The indexes of the children, by digit.
    children: [u32; 3],
}

impl MerkleTrie {
    /// Creates the trie without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. Adding it again removes it, so the caller must insert only new messages.
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

    /// Returns the child of a node; creates it if it does not exist.
    fn child(&mut self, parent: usize, digit: usize) -> usize {
        if self.nodes[parent].children[digit] == NONE {
            let index = u32::try_from(self.nodes.len()).expect("fewer nodes than minutes");
            self.nodes[parent].children[digit] = index;
            self.nodes.push(TrieNode::default());
        }
        self.nodes[parent].children[digit] as usize
    }

    /// Drops the first child wherever a node has three, as the published server does once per
    /// request. A node whose hash is 0 is unchanged, with everything below it.
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
            let child = self.nodes[index].children[digit];
            if child == NONE {
                continue;
            }
            if kept == KEPT {
                self.nodes[index].children[digit] = NONE;
            } else {
                kept += 1;
                self.prune_node(child as usize);
            }
        }
    }

    /// Returns the hash of all inserted messages; `None` if there were none.
    pub fn root(&self) -> Option<i32> {
        self.nodes.first().map(|root| root.hash)
    }
}

impl PartialEq for MerkleTrie {
    /// Compares encodings, not the order of nodes in memory: a trie has exactly one encoding.
    fn eq(&self, other: &Self) -> bool {
        let [mut a, mut b] = [Vec::new(), Vec::new()];
        self.encode(&mut a);
        other.encode(&mut b);
        a == b
    }
}

/// Receives the nodes of a trie in order: each opens, then come its children, then it closes.
trait TrieVisitor {
    /// A reference to an open node.
    type Place: Copy;
    /// Opens the root, or the child of an open node at a digit.
    fn open(&mut self, parent: Option<(Self::Place, u8)>) -> Self::Place;
    /// Closes a node.
    fn close(&mut self, place: Self::Place, hash: i32);
}

/// Fills a trie that has no nodes.
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

/// Returns the key's digits and the index of the first that is written. Minute 0 has one digit.
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

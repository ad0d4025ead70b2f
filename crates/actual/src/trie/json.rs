//! The trie's JSON, byte for byte what JavaScript's `JSON.stringify` returns for the published one.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Deserialize;

use super::{KEY_DIGITS_MAX, MerkleTrie, NONE, TrieVisitor};

/// An error for a text that is not the JSON of a trie.
#[derive(Debug, thiserror::Error)]
pub enum ParseTrieError {
    /// The text is not JSON, or not of nodes.
    #[error("not a valid trie: {0}")]
    Json(#[from] serde_json::Error),
    /// A node, or a root with children, has no hash.
    #[error("not a valid trie: a node has no hash")]
    NoHash,
    /// A path has more digits than any minute.
    #[error("not a valid trie: a key has more than {KEY_DIGITS_MAX} digits")]
    TooDeep,
}

impl MerkleTrie {
    /// Appends the JSON: children in order, then the hash; no spaces.
    pub fn write_json(&self, out: &mut String) {
        if self.nodes.is_empty() {
            out.push_str("{}");
        } else {
            self.walk_node(0, None, &mut TrieJsonWriter::new(out));
        }
    }

    fn walk_node<V: TrieVisitor>(
        &self,
        index: usize,
        parent: Option<(V::Place, u8)>,
        visit: &mut V,
    ) {
        let node = self.nodes[index];
        let place = visit.open(parent);
        for (digit, child) in (0..).zip(node.children) {
            if child != NONE {
                self.walk_node(child as usize, Some((place, digit)), visit);
            }
        }
        visit.close(place, node.hash);
    }

    /// Parses the JSON, with any spaces and in any order.
    pub fn from_json(text: &str) -> Result<Self, ParseTrieError> {
        let root: JsonNode = serde_json::from_str(text)?;
        let mut trie = Self::new();
        if !matches!(root, JsonNode { hash: None, zero: None, one: None, two: None }) {
            root.add_to(&mut trie, None, 0)?;
        }
        Ok(trie)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonNode {
    hash: Option<i32>,
    #[serde(rename = "0")]
    zero: Option<Box<JsonNode>>,
    #[serde(rename = "1")]
    one: Option<Box<JsonNode>>,
    #[serde(rename = "2")]
    two: Option<Box<JsonNode>>,
}

impl JsonNode {
    fn add_to(
        self,
        trie: &mut MerkleTrie,
        parent: Option<(usize, u8)>,
        depth: usize,
    ) -> Result<(), ParseTrieError> {
        if depth > KEY_DIGITS_MAX {
            return Err(ParseTrieError::TooDeep);
        }
        let place = trie.open(parent);
        for (digit, child) in (0..).zip([self.zero, self.one, self.two]) {
            if let Some(child) = child {
                child.add_to(trie, Some((place, digit)), depth + 1)?;
            }
        }
        trie.close(place, self.hash.ok_or(ParseTrieError::NoHash)?);
        Ok(())
    }
}

/// Writes the visited nodes as JSON.
pub(super) struct TrieJsonWriter<'a> {
    out: &'a mut String,
    /// The last hash and the place of its digits: most nodes have one child, which has the same
    /// hash.
    last: (i32, Range<usize>),
}

impl<'a> TrieJsonWriter<'a> {
    pub(super) fn new(out: &'a mut String) -> Self {
        Self { out, last: (0, 0..0) }
    }

    fn separate(&mut self) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
    }
}

impl TrieVisitor for TrieJsonWriter<'_> {
    type Place = ();

    fn open(&mut self, parent: Option<((), u8)>) {
        if let Some(((), digit)) = parent {
            self.separate();
            self.out.push_str(["\"0\":", "\"1\":", "\"2\":"][usize::from(digit)]);
        }
        self.out.push('{');
    }

    fn close(&mut self, (): (), hash: i32) {
        self.separate();
        self.out.push_str("\"hash\":");
        let start = self.out.len();
        match &self.last {
            (last, digits) if *last == hash && !digits.is_empty() => {
                self.out.extend_from_within(digits.clone());
            }
            _ => write!(self.out, "{hash}").expect("a string takes any text"),
        }
        self.last = (hash, start..self.out.len());
        self.out.push('}');
    }
}

//! The tree of parts of a message: where each part's header and body begin, and where it ends.
//!
//! This module finds only the limits of the parts. It reads each line once, and compares those that
//! begin with two hyphens with the boundaries that are open (RFC 2046 §5.1). The text of a header
//! is parsed by `mail-parser`; its parser for whole messages has no limit for nested messages, and
//! some of them make it overflow the stack.
//!
//! ```text
//! parts = 01 { part }
//! part  = depth header body end        LEB128 each, in the order of the message
//! ```
//!
//! # Invariants
//! - `header <= body <= end <= message.len()`, and a part lies within the part above it.
//! - At most [`PARTS_COUNT_MAX`] parts and [`PARTS_DEPTH_MAX`] levels: further ones are body text.

use crate::error::{Error, Result};
use crate::header_fields::HeaderFields;
use crate::leb128;
use crate::limits::{PARTS_COUNT_MAX, PARTS_DEPTH_MAX};

const FORMAT: u8 = 1;

/// A part of a message. The offsets are in bytes from the start of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// The number of parts above this one; 0 for the message itself.
    pub depth: u8,
    pub header: usize,
    pub body: usize,
    /// The offset of the byte after the part. The line break before a boundary is not part of it.
    pub end: usize,
}

/// The parts of a message in their order: each part comes before the parts in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartTree(Vec<PartRange>);

impl PartTree {
    /// Finds the parts of a message. Every text is a message; one without structure is one part.
    pub fn parse(message: &[u8]) -> Self {
        let mut scan = PartScan { message, parts: Vec::new(), open: Vec::new() };
        let mut at = scan.begin_part(0, 0);
        while at < message.len() {
            let line_end = line_end(message, at);
            let line = &message[at..line_end];
            at = if line.starts_with(b"--") { scan.boundary(at, line_end) } else { line_end };
        }
        Self(scan.parts)
    }

    /// Returns the parts in their order; the first is the message itself.
    pub fn parts(&self) -> &[PartRange] {
        &self.0
    }

    /// Returns the message itself.
    pub fn root(&self) -> PartRange {
        self.0[0]
    }

    /// Returns the parts that contain no parts.
    pub fn leaves(&self) -> impl Iterator<Item = PartRange> + '_ {
        let following = self.0.iter().skip(1).map(Some).chain([None]);
        let pairs = self.0.iter().zip(following);
        pairs
            .filter(|(part, next)| next.is_none_or(|next| next.depth <= part.depth))
            .map(|(part, _)| *part)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        for part in &self.0 {
            let PartRange { depth, header, body, end } = *part;
            for number in [usize::from(depth), header, body, end] {
                leb128::write(&mut bytes, number as u64);
            }
        }
        bytes
    }

    /// Reads the tree of a message with `size` bytes.
    pub(crate) fn from_bytes(bytes: &[u8], size: usize) -> Result<Self> {
        const DAMAGED: Error = Error::Damaged { what: "the parts of a message" };
        let mut rest = bytes.strip_prefix(&[FORMAT]).ok_or(DAMAGED)?;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let mut number = || leb128::read(&mut rest).and_then(|n| usize::try_from(n).ok());
            let numbers = (number(), number(), number(), number());
            let (Some(depth), Some(header), Some(body), Some(end)) = numbers else {
                return Err(DAMAGED);
            };
            let depth = u8::try_from(depth).ok().filter(|depth| *depth <= PARTS_DEPTH_MAX);
            let (Some(depth), true) = (depth, header <= body && body <= end && end <= size) else {
                return Err(DAMAGED);
            };
            parts.push(PartRange { depth, header, body, end });
        }
        let is_whole = !parts.is_empty() && parts.len() <= PARTS_COUNT_MAX;
        if is_whole { Ok(Self(parts)) } else { Err(DAMAGED) }
    }
}

/// A part whose end has not been reached.
struct OpenPart {
    index: usize,
    /// The boundary of its parts, if it is a multipart that has not ended.
    boundary: Option<Vec<u8>>,
    /// Whether its parts are messages if their headers do not name another type.
    is_digest: bool,
}

struct PartScan<'m> {
    message: &'m [u8],
    parts: Vec<PartRange>,
    /// The part that the scan is in, and all parts above it; the innermost is the last.
    open: Vec<OpenPart>,
}

impl PartScan<'_> {
    /// Begins a part at `header`, and a message in it if it is one. Returns the offset of the
    /// innermost body.
    fn begin_part(&mut self, header: usize, depth: u8) -> usize {
        let (mut header, mut depth) = (header, depth);
        loop {
            let is_in_digest = self.open.last().is_some_and(|open| open.is_digest);
            let body = self.header_end(header);
            let fields = HeaderFields::parse(&self.message[header..body]);
            let boundary = fields.boundary().map(|text| text.as_bytes().to_vec());
            let is_message = fields.is_message(is_in_digest);
            let is_deepest = depth == PARTS_DEPTH_MAX || self.parts.len() + 1 == PARTS_COUNT_MAX;
            self.open.push(OpenPart {
                index: self.parts.len(),
                boundary: if is_deepest { None } else { boundary },
                is_digest: fields.is_digest(),
            });
            self.parts.push(PartRange { depth, header, body, end: self.message.len() });
            if !is_message || is_deepest {
                return body;
            }
            (header, depth) = (body, depth + 1);
        }
    }

    /// Returns the offset after the empty line that ends the header, or that of the boundary that
    /// ends the part before.
    fn header_end(&self, header: usize) -> usize {
        let mut at = header;
        while at < self.message.len() {
            let end = line_end(self.message, at);
            match &self.message[at..end] {
                b"\n" | b"\r\n" => return end,
                line if line.starts_with(b"--") && self.find_boundary(line).is_some() => return at,
                _ => at = end,
            }
        }
        at
    }

    /// Handles a line that may be a boundary. Returns the offset at which the scan continues.
    fn boundary(&mut self, at: usize, line_end: usize) -> usize {
        let Some((level, is_last)) = self.find_boundary(&self.message[at..line_end]) else {
            return line_end;
        };
        if !is_last && self.parts.len() == PARTS_COUNT_MAX {
            return line_end;
        }
        let mut end = before_line_break(self.message, at);
        for closed in self.open.drain(level + 1..).rev() {
            let part = &mut self.parts[closed.index];
            // An empty part ends where its body begins. The line break before that belongs to the
            // boundary.
            end = end.max(part.body);
            part.end = end;
        }
        let parent = &mut self.open[level];
        if is_last {
            parent.boundary = None;
            return line_end;
        }
        let depth = self.parts[parent.index].depth + 1;
        self.begin_part(line_end, depth)
    }

    /// Finds the innermost open part with this boundary. The second value is whether the line is
    /// the last boundary of that part.
    fn find_boundary(&self, line: &[u8]) -> Option<(usize, bool)> {
        let line = line.strip_prefix(b"--")?.trim_ascii_end();
        for (level, open) in self.open.iter().enumerate().rev() {
            let Some(boundary) = &open.boundary else { continue };
            match line.strip_prefix(boundary.as_slice()) {
                Some(b"") => return Some((level, false)),
                Some(b"--") => return Some((level, true)),
                _ => {}
            }
        }
        None
    }
}

/// Returns the offset after the line that begins at `at`.
fn line_end(message: &[u8], at: usize) -> usize {
    let rest = &message[at..];
    rest.iter().position(|byte| *byte == b'\n').map_or(message.len(), |index| at + index + 1)
}

/// Returns the offset of the line break that ends at `at`, or `at` if there is none.
fn before_line_break(message: &[u8], at: usize) -> usize {
    let before = &message[..at];
    let before =
        before.strip_suffix(b"\n").map_or(before, |line| line.strip_suffix(b"\r").unwrap_or(line));
    before.len()
}

#[cfg(test)]
mod tests;

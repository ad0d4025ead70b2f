//! Compares the device's set with the server's, as a state machine
//! (`docs/reference/formats/8-reconcile.md`).
//!
//! ```text
//!  claims: digests of windows, newest ids ─► diffs: equal, buckets, messages and wanted ids
//!     ▲                                         │
//!     └── digests or ids of differing buckets ◄─┘
//! ```
//! The device leads: it claims what it holds in ranges of time, and the server answers where its
//! own set differs. Differing ranges are divided by count on both sides, so that it does not matter
//! whether a set is spread over ten years or over one second.
//!
//! # Invariants
//! - No I/O: the caller sends the claims.
//! - The comparison terminates: an answer makes a claim smaller, or turns it into one of ids, whose
//!   answer is final. After [`ROUNDS_COUNT_MAX`] requests, or [`IDLE_ROUNDS_COUNT_MAX`] that find
//!   nothing, it ends whatever the server answers.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use crdt::{Fingerprint, FingerprintWindow, Timestamp};

use crate::wire::{ReconcileRequest, WireMessage, WireRangeClaim, WireRangeDiff};

/// The number of newest messages whose ids are sent with the first request, because the sides most
/// likely differ in what they wrote last.
const NEWEST_COUNT: usize = 64;
/// The number of messages in a range up to which their ids are claimed at once.
const IDS_COUNT_MIN: usize = 64;
/// The number of ids that are claimed without narrowing ranges down first: 64 KiB.
const IDS_COUNT_FREE: usize = 8_192;
/// The number of digests into which a range is divided, and the minimum messages for each.
const PIECES_COUNT: usize = 16;
const PIECE_MESSAGES_MIN: usize = 16;
/// The approximate maximum bytes of a request: more claims wait for the next one.
const REQUEST_BYTES_MAX: usize = 2 << 20;
/// The approximate bytes of a claim on the wire, without its ids.
const CLAIM_BYTES: usize = 30;
/// The maximum number of requests of one comparison. Each carries up to [`REQUEST_BYTES_MAX`] of
/// ids, a quarter of a million messages.
const ROUNDS_COUNT_MAX: u32 = 1_000;
/// The maximum number of consecutive requests that find nothing. Differing ranges are divided into
/// sixteen until few enough messages are left to list them, which takes ten requests for the
/// largest sets.
const IDLE_ROUNDS_COUNT_MAX: u32 = 64;

/// A message of the device, reduced to what a comparison needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReconcileEntry {
    /// The timestamp of the message.
    pub timestamp: Timestamp,
    /// The [`Fingerprint::short_digest`] of the message.
    pub id: u64,
}

impl ReconcileEntry {
    /// Creates the entry of a message.
    pub fn from_message(timestamp: Timestamp, content: &[u8]) -> Self {
        Self { timestamp, id: Fingerprint::from_message(timestamp, content).short_digest() }
    }

    fn hybrid_time(&self) -> u64 {
        self.timestamp.hybrid_time()
    }
}

/// The differences that an answer revealed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetDifference {
    /// The messages that the device lacked.
    pub missing: Vec<WireMessage>,
    /// The device's messages that the server lacks.
    pub wanted: Vec<Timestamp>,
}

/// The error for an answer of the server that does not match the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the range diffs do not match the claims")]
pub struct InvalidRangeDiffs;

/// One comparison, from the first request to the last answer.
#[derive(Clone, Debug)]
pub struct SetReconciler {
    /// The device's messages, in order of time.
    items: Vec<ReconcileEntry>,
    /// The ranges that are still to be claimed, in order of time.
    open: VecDeque<PendingRange>,
    /// The ranges that the last request claimed.
    asked: Vec<PendingRange>,
    rounds: u32,
    /// The number of requests since a difference was found.
    idle_rounds: u32,
    /// The approximate maximum bytes of a request.
    bytes_max: usize,
}

/// A range that may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingRange {
    time_range: Range<u64>,
    /// Whether ids are claimed, instead of a digest.
    is_listed: bool,
}

impl SetReconciler {
    /// Creates a comparison of the device's messages, in any order.
    pub fn new(mut items: Vec<ReconcileEntry>) -> Self {
        items.sort_unstable();
        let newest = items.len().saturating_sub(NEWEST_COUNT);
        let newest_start = if newest == 0 { 0 } else { items[newest].hybrid_time() };
        // The first range begins at 0, because the server may have messages of any time.
        let older = items.iter().take_while(|item| item.hybrid_time() < newest_start);
        let windows = older
            .map(|item| FingerprintWindow::for_timestamp(item.timestamp).time_range().start)
            .skip(1);
        let mut starts: Vec<u64> = [0].into_iter().chain(windows).collect();
        starts.dedup();
        let (open, asked, bytes_max) = (VecDeque::new(), Vec::new(), REQUEST_BYTES_MAX);
        let mut this = Self { items, open, asked, rounds: 0, idle_rounds: 0, bytes_max };
        let ends = starts.iter().copied().skip(1).chain([newest_start]);
        for (&start, end) in starts.iter().zip(ends).filter(|(start, end)| *start < end) {
            let is_listed = this.within(&(start..end)).is_empty();
            this.open.push_back(PendingRange { time_range: start..end, is_listed });
        }
        this.open.push_back(PendingRange { time_range: newest_start..u64::MAX, is_listed: true });
        this
    }

    /// Returns the next request, or `None` when everything was compared.
    pub fn request(&mut self) -> Option<ReconcileRequest> {
        let is_over = self.rounds == ROUNDS_COUNT_MAX || self.idle_rounds == IDLE_ROUNDS_COUNT_MAX;
        if self.open.is_empty() || is_over {
            return None;
        }
        self.rounds += 1;
        let (mut claims, mut bytes, mut end) = (Vec::new(), 0, 0);
        while let Some(open) = self.open.pop_front() {
            let claim = self.claim(&open, end);
            bytes += CLAIM_BYTES + 8 * claim.ids.len();
            if bytes > self.bytes_max && !claims.is_empty() {
                self.open.push_front(open);
                break;
            }
            end = open.time_range.end;
            claims.push(claim);
            self.asked.push(open);
        }
        Some(ReconcileRequest { claims })
    }

    /// Reduces the size of later requests, because the last one was too large for the server.
    /// Returns false if that is impossible.
    pub fn shrink_requests(&mut self) -> bool {
        let can = self.asked.len() > 1;
        self.bytes_max /= 2;
        for open in self.asked.drain(..).rev() {
            self.open.push_front(open);
        }
        can
    }

    /// Handles the range diffs of an answer.
    pub fn handle_response(
        &mut self,
        findings: Vec<WireRangeDiff>,
    ) -> Result<SetDifference, InvalidRangeDiffs> {
        let asked = std::mem::take(&mut self.asked);
        if findings.is_empty() || findings.len() > asked.len() {
            return Err(InvalidRangeDiffs);
        }
        let mut found = SetDifference::default();
        let mut parts = Vec::new();
        let mut next = Vec::new();
        let unanswered = asked[findings.len()..].to_vec();
        for (open, finding) in asked.into_iter().zip(findings) {
            match finding {
                WireRangeDiff { equal: true, .. } => {}
                finding if open.is_listed => {
                    next.extend(self.resolve_ids(&open, finding, &mut found)?);
                }
                finding => {
                    parts.push((next.len(), self.find_differing(&open, &finding, &mut found)?));
                }
            }
        }
        let count: usize = parts.iter().map(|(_, parts)| parts.compared).sum();
        let differing = parts.iter().flat_map(|(_, parts)| &parts.ranges);
        let ids: usize = differing.clone().map(|range| self.within(range).len()).sum();
        // If most buckets differ, narrowing them down would only show that most of their parts
        // differ, too.
        let listing = ids <= IDS_COUNT_FREE || differing.count() * 2 > count;
        // From the last to the first, so that the places stay right.
        for (place, parts) in parts.into_iter().rev() {
            let ranges = parts.ranges.into_iter().flat_map(|range| self.split(range, listing));
            next.splice(place..place, ranges.collect::<Vec<_>>());
        }
        for open in next.into_iter().chain(unanswered).rev() {
            self.open.push_front(open);
        }
        self.add_missing(&found.missing)?;
        let is_idle = found.missing.is_empty() && found.wanted.is_empty();
        self.idle_rounds = if is_idle { self.idle_rounds + 1 } else { 0 };
        Ok(found)
    }

    fn claim(&self, open: &PendingRange, previous_end: u64) -> WireRangeClaim {
        let items = self.within(&open.time_range);
        let mut claim = WireRangeClaim {
            gap: open.time_range.start - previous_end,
            length: open.time_range.end - open.time_range.start,
            ..WireRangeClaim::default()
        };
        if open.is_listed {
            claim.ids = items.iter().map(|item| item.id).collect();
        } else {
            (claim.count, claim.digest) = sum(items);
        }
        claim
    }

    /// Returns the device's messages in a range.
    fn within(&self, time_range: &Range<u64>) -> &[ReconcileEntry] {
        let place =
            |hybrid_time| self.items.partition_point(|item| item.hybrid_time() < hybrid_time);
        &self.items[place(time_range.start)..place(time_range.end)]
    }

    /// Handles the answer to a claim of ids. Returns the rest that was not examined.
    fn resolve_ids(
        &self,
        open: &PendingRange,
        finding: WireRangeDiff,
        found: &mut SetDifference,
    ) -> Result<Option<PendingRange>, InvalidRangeDiffs> {
        let end = match finding.examined_length {
            0 => open.time_range.end,
            length => open.time_range.start.checked_add(length).ok_or(InvalidRangeDiffs)?,
        };
        if end > open.time_range.end {
            return Err(InvalidRangeDiffs);
        }
        let wanted: HashSet<u64> = finding.wanted.into_iter().collect();
        let lacking = self.within(&(open.time_range.start..end)).iter();
        let lacking = lacking.filter(|item| wanted.contains(&item.id)).map(|item| item.timestamp);
        found.wanted.extend(lacking);
        found.missing.extend(finding.messages);
        let rest = end..open.time_range.end;
        Ok((!rest.is_empty()).then_some(PendingRange { time_range: rest, is_listed: true }))
    }

    /// Handles the answer to a claim of a digest. Returns the ranges that differ.
    fn find_differing(
        &self,
        open: &PendingRange,
        finding: &WireRangeDiff,
        found: &mut SetDifference,
    ) -> Result<DifferingRanges, InvalidRangeDiffs> {
        let mut parts = DifferingRanges { ranges: Vec::new(), compared: finding.buckets.len() };
        let mut start = open.time_range.start;
        for part in &finding.buckets {
            let end = start.checked_add(part.length).ok_or(InvalidRangeDiffs)?;
            if end > open.time_range.end {
                return Err(InvalidRangeDiffs);
            }
            if sum(self.within(&(start..end))) != (part.count, part.digest) {
                parts.ranges.push(start..end);
            }
            start = end;
        }
        let only_here = self.within(&(start..open.time_range.end));
        found.wanted.extend(only_here.iter().map(|item| item.timestamp));
        Ok(parts)
    }

    /// Returns the next claims for a range that differs.
    fn split(&self, time_range: Range<u64>, listing: bool) -> Vec<PendingRange> {
        let items = self.within(&time_range);
        if listing || items.len() <= IDS_COUNT_MIN {
            return vec![PendingRange { time_range, is_listed: true }];
        }
        let piece = PIECE_MESSAGES_MIN.max(items.len().div_ceil(PIECES_COUNT));
        let mut starts = vec![time_range.start];
        for item in items.iter().step_by(piece).skip(1) {
            // Messages with the same hybrid time stay together.
            if *starts.last().expect("not empty") < item.hybrid_time() {
                starts.push(item.hybrid_time());
            }
        }
        let is_listed = starts.len() == 1;
        let ends = starts.iter().copied().skip(1).chain([time_range.end]);
        let pieces = starts.iter().zip(ends);
        pieces.map(|(&start, end)| PendingRange { time_range: start..end, is_listed }).collect()
    }

    fn add_missing(&mut self, messages: &[WireMessage]) -> Result<(), InvalidRangeDiffs> {
        if messages.is_empty() {
            return Ok(());
        }
        for message in messages {
            let timestamp = Timestamp::from_bytes(&message.timestamp).or(Err(InvalidRangeDiffs))?;
            self.items.push(ReconcileEntry::from_message(timestamp, &message.content));
        }
        self.items.sort();
        Ok(())
    }
}

/// The parts of a range that differ, and the number of compared parts.
struct DifferingRanges {
    ranges: Vec<Range<u64>>,
    compared: usize,
}

fn sum(items: &[ReconcileEntry]) -> (u64, u64) {
    (items.len() as u64, items.iter().fold(0, |sum, item| sum.wrapping_add(item.id)))
}

#[cfg(test)]
mod tests;

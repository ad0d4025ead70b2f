//! The server's side of set reconciliation (`docs/reference/formats/8-reconcile.md`).
//!
//! A device claims which messages it has in ranges of time; each claim gets a range diff. The
//! server's own side comes from the recorded windows if a claim covers them completely, or else
//! from the messages.
//!
//! # Invariants
//! - No state is kept between two requests, and the set is not changed.
//! - A recorded window that proves wrong is rebuilt: otherwise devices of a damaged vault would
//!   compare forever.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crdt::{Fingerprint, FingerprintWindow, Message};

use super::{MessageEntry, RangeBucket, SyncStore};
use crate::error::Result;

/// The minimum number of messages in a bucket. Below it, the ids of the bucket's messages are as
/// short as more buckets would be.
const PART_MESSAGES_MIN: u64 = 64;
/// The maximum number of buckets in one response, about 20 bytes each. With more messages, buckets
/// grow.
const PARTS_COUNT_MAX: u64 = 4_096;
/// The maximum number of messages that one response reads for claims of ids. It bounds memory, at
/// 32 bytes each.
const ITEMS_COUNT_MAX: usize = 250_000;
/// The maximum number of ranges per read of messages. It bounds how much is read that does not fit
/// into the response.
const RANGES_COUNT_MAX: usize = 1_000;

/// A device's claim about its messages in a range of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeClaim {
    pub time_range: Range<u64>,
    pub summary: RangeSummary,
}

/// A summary of messages: one fingerprint or a list of ids. The numbers are
/// [`Fingerprint::short_digest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeSummary {
    Fingerprint { count: u64, digest: u64 },
    Ids(Vec<u64>),
}

/// The server's response to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeDiff {
    /// Both sides have the same messages.
    Equal,
    /// The server's buckets, in response to a fingerprint, from the start of the range to the end
    /// of the last bucket.
    Buckets(Vec<RangeBucket>),
    /// The difference, in response to ids.
    Difference {
        /// The messages that the device lacks, in order of time.
        messages: Vec<Message>,
        /// The ids of messages that the server lacks.
        wanted: Vec<u64>,
        /// The moment up to which the range was compared, if not to its end. Only those of `wanted`
        /// that are before it are lacking.
        end: Option<u64>,
    },
}

/// Compares claims, which must be in order of time and must not overlap. Returns fewer diffs than
/// claims if the contents of their messages reach `bytes_max`.
pub async fn reconcile(
    store: &dyn SyncStore,
    claims: &[RangeClaim],
    bytes_max: usize,
) -> Result<Vec<RangeDiff>> {
    let mut sums = compare_sums(store, claims).await?.into_iter();
    let mut findings = Vec::with_capacity(claims.len());
    let mut listed = IdClaimResolver { store, bytes_left: bytes_max, items_left: ITEMS_COUNT_MAX };
    let mut rest = claims;
    while let Some((claim, after)) = rest.split_first() {
        if let RangeSummary::Fingerprint { .. } = claim.summary {
            findings.push(sums.next().expect("one for each claim of a sum"));
            rest = after;
            continue;
        }
        let is_listed = |claim: &&RangeClaim| matches!(claim.summary, RangeSummary::Ids(_));
        let count = rest.iter().take(RANGES_COUNT_MAX).take_while(is_listed).count();
        let (run, after) = rest.split_at(count);
        let found = listed.answer(run).await?;
        let is_cut = found.len() < run.len();
        findings.extend(found);
        if is_cut {
            break;
        }
        rest = after;
    }
    Ok(findings)
}

async fn compare_sums(store: &dyn SyncStore, claims: &[RangeClaim]) -> Result<Vec<RangeDiff>> {
    let asked: Vec<_> = claims
        .iter()
        .filter_map(|claim| match claim.summary {
            RangeSummary::Fingerprint { count, digest } => {
                Some((claim.time_range.clone(), (count, digest)))
            }
            RangeSummary::Ids(_) => None,
        })
        .collect();
    let ranges: Vec<_> = asked.iter().map(|(time_range, _)| time_range.clone()).collect();
    let here = fingerprints(store, &ranges).await?;
    let mut findings = vec![RangeDiff::Equal; asked.len()];
    let differing: Vec<usize> = (0..asked.len())
        .filter(|&index| (here[index].count, here[index].short_digest()) != asked[index].1)
        .collect();
    let messages: u64 = differing.iter().map(|&index| here[index].count).sum();
    let part_messages = PART_MESSAGES_MIN.max(messages / PARTS_COUNT_MAX);
    let ranges = differing.iter().map(|&index| ranges[index].clone()).collect();
    let parts = store.buckets(ranges, part_messages).await?;
    let mut is_wrong = false;
    for (index, parts) in differing.into_iter().zip(parts) {
        is_wrong |= sum(parts.iter().map(|part| part.fingerprint)) != here[index];
        findings[index] = RangeDiff::Buckets(parts);
    }
    if is_wrong {
        // If a message was stored between the two reads, this is only unnecessary work.
        store.rebuild().await?;
    }
    Ok(findings)
}

/// Returns the fingerprints of ranges, from the recorded windows if they begin and end with
/// windows.
async fn fingerprints(store: &dyn SyncStore, ranges: &[Range<u64>]) -> Result<Vec<Fingerprint>> {
    let windows: BTreeMap<FingerprintWindow, Fingerprint> =
        store.windows().await?.into_iter().collect();
    let is_start =
        |moment: u64| FingerprintWindow::for_hybrid_time(moment).time_range().start == moment;
    let is_whole = |range: &Range<u64>| {
        is_start(range.start) && (range.end == u64::MAX || is_start(range.end))
    };
    let others: Vec<_> = ranges.iter().filter(|range| !is_whole(range)).cloned().collect();
    let mut computed = store.buckets(others, u64::MAX).await?.into_iter();
    let fingerprint = |range: &Range<u64>| {
        if !is_whole(range) {
            let parts = computed.next().expect("one for each of the others");
            return sum(parts.iter().map(|part| part.fingerprint));
        }
        let first = FingerprintWindow::for_hybrid_time(range.start);
        let end = if range.end == u64::MAX {
            FingerprintWindow(u32::MAX)
        } else {
            FingerprintWindow::for_hybrid_time(range.end)
        };
        sum(windows.range(first..end).map(|(_, recorded)| *recorded))
    };
    Ok(ranges.iter().map(fingerprint).collect())
}

fn sum(fingerprints: impl Iterator<Item = Fingerprint>) -> Fingerprint {
    fingerprints.fold(Fingerprint::default(), |mut sum, one| {
        sum += one;
        sum
    })
}

/// Compares claims of ids until a limit is reached.
struct IdClaimResolver<'a> {
    store: &'a dyn SyncStore,
    bytes_left: usize,
    items_left: usize,
}

impl IdClaimResolver<'_> {
    async fn answer(&mut self, claims: &[RangeClaim]) -> Result<Vec<RangeDiff>> {
        let ranges: Vec<_> = claims.iter().map(|claim| claim.time_range.clone()).collect();
        let lists = self.store.entries(ranges, self.items_left).await?;
        let mut findings = Vec::new();
        for (claim, items) in claims.iter().zip(lists) {
            if self.bytes_left == 0 {
                break;
            }
            self.items_left -= items.len();
            // The list may lack messages of the last moment.
            let last = items.last().map(|item| item.timestamp.hybrid_time());
            let end = last.filter(|_| self.items_left == 0);
            let RangeSummary::Ids(ids) = &claim.summary else { continue };
            findings.push(self.find(ids, &items, end).await?);
        }
        Ok(findings)
    }

    async fn find(
        &mut self,
        ids: &[u64],
        items: &[MessageEntry],
        end: Option<u64>,
    ) -> Result<RangeDiff> {
        let there: HashSet<u64> = ids.iter().copied().collect();
        let here: HashSet<u64> = items.iter().map(MessageEntry::short_digest).collect();
        let missing = items.iter().filter(|item| !there.contains(&item.short_digest()));
        let missing: Vec<_> = missing.map(|item| item.timestamp).collect();
        let wanted: Vec<_> = ids.iter().copied().filter(|id| !here.contains(id)).collect();
        if missing.is_empty() && wanted.is_empty() && end.is_none() {
            return Ok(RangeDiff::Equal);
        }
        let messages = self.store.messages(missing.clone(), self.bytes_left).await?;
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        let first_left = missing.get(messages.len()).map(|timestamp| timestamp.hybrid_time());
        Ok(RangeDiff::Difference { messages, wanted, end: first_left.or(end) })
    }
}

//! Finds the newest message of a vault with the operations that both storages have.

use crdt::Timestamp;

use super::SyncStore;
use crate::error::Result;

/// The number of messages in the bucket that is read one by one.
const PART_COUNT: u64 = 1_000;

/// Returns the newest timestamp, or an earlier one of its moment if that has thousands of messages.
pub async fn newest_timestamp(vault: &dyn SyncStore) -> Result<Option<Timestamp>> {
    let windows = vault.windows().await?;
    let Some((window, _)) = windows.last() else { return Ok(None) };
    let time_range = window.time_range();
    let parts = vault.buckets(vec![time_range.clone()], PART_COUNT).await?;
    // The last bucket ends where the window does, and begins where the one before it ends.
    let ends = parts.last().map(|parts| parts.iter().rev().skip(1).map(|part| part.end));
    let start = ends.and_then(|mut ends| ends.next()).unwrap_or(time_range.start);
    let count_max = usize::try_from(2 * PART_COUNT).unwrap_or(usize::MAX);
    let last = std::iter::once(start..time_range.end).collect();
    let items = vault.entries(last, count_max).await?;
    Ok(items.last().and_then(|items| items.last()).map(|item| item.timestamp))
}

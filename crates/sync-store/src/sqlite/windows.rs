//! A vault's windows: the recorded sums by time, and sums computed from the messages themselves.

use std::collections::BTreeMap;
use std::ops::Range;

use crdt::{Fingerprint, FingerprintWindow, Timestamp};
use rusqlite::Connection;

use crate::error::Result;
use crate::sqlite::rows::{blob, fingerprint, summary, timestamp, write_summary};
use crate::sqlite::schema::to_column;
use crate::vault::{FingerprintCheck, MessageEntry, RangeBucket, VaultSummary};

pub(super) fn recorded(db: &Connection) -> Result<Vec<(FingerprintWindow, Fingerprint)>> {
    let sql = "SELECT window_id, messages_count, digest FROM fingerprint_window
               ORDER BY window_id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement
        .query_map([], |row| Ok((FingerprintWindow(row.get(0)?), fingerprint(row, 1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether the sum of the recorded windows equals the recorded summary.
pub(super) fn add_up(db: &Connection) -> Result<bool> {
    let mut sum = Fingerprint::default();
    for (_, window) in recorded(db)? {
        sum += window;
    }
    Ok(sum == summary(db)?.fingerprint)
}

/// Adds the part of `all` that is not in `known` to the recorded windows.
pub(super) fn add(
    db: &Connection,
    all: &[(FingerprintWindow, Fingerprint)],
    known: &[(FingerprintWindow, Fingerprint)],
) -> Result<()> {
    let sql = "SELECT messages_count, digest FROM fingerprint_window WHERE window_id = ?1";
    let mut find = db.prepare_cached(sql)?;
    for &(window, added) in all {
        let mut sum = added;
        if let Ok(place) = known.binary_search_by_key(&window, |(window, _)| *window) {
            sum -= known[place].1;
        }
        if sum.count > 0 {
            let mut rows = find.query([window.0])?;
            if let Some(row) = rows.next()? {
                sum += fingerprint(row, 0)?;
            }
            write(db, window, sum)?;
        }
    }
    Ok(())
}

/// Replaces the hash of one message in its window's sum.
pub(super) fn replace(
    db: &Connection,
    window: FingerprintWindow,
    old: Fingerprint,
    new: Fingerprint,
) -> Result<()> {
    let sql = "SELECT messages_count, digest FROM fingerprint_window WHERE window_id = ?1";
    let mut sum = db.prepare_cached(sql)?.query_row([window.0], |row| fingerprint(row, 0))?;
    sum -= old;
    sum += new;
    write(db, window, sum)
}

fn write(db: &Connection, window: FingerprintWindow, sum: Fingerprint) -> Result<()> {
    let sql = "INSERT INTO fingerprint_window VALUES (?1, ?2, ?3)
               ON CONFLICT (window_id) DO UPDATE
               SET messages_count = excluded.messages_count, digest = excluded.digest";
    let columns = (window.0, to_column(sum.count), &sum.digest_bytes()[..]);
    db.prepare_cached(sql)?.execute(columns)?;
    Ok(())
}

/// Visits the messages of a range of moments in order of time, at most `count_max`.
fn scan(
    db: &Connection,
    time_range: &Range<u64>,
    count_max: usize,
    mut visit: impl FnMut(Timestamp, u128),
) -> Result<()> {
    let sql = "SELECT timestamp, hash FROM message WHERE timestamp >= ?1 AND timestamp < ?2
               ORDER BY timestamp LIMIT ?3";
    let mut statement = db.prepare_cached(sql)?;
    // A timestamp's first bytes are its hybrid time.
    let (start, end) = (time_range.start.to_be_bytes(), time_range.end.to_be_bytes());
    let mut rows = statement.query((&start[..], &end[..], to_column(count_max as u64)))?;
    while let Some(row) = rows.next()? {
        visit(timestamp(row, 0)?, u128::from_be_bytes(row.get(1)?));
    }
    Ok(())
}

pub(super) fn buckets(
    db: &Connection,
    ranges: &[Range<u64>],
    count: u64,
) -> Result<Vec<Vec<RangeBucket>>> {
    let cut = |time_range: &Range<u64>| {
        let mut buckets = Vec::new();
        let (mut sum, mut last) = (Fingerprint::default(), 0);
        scan(db, time_range, usize::MAX, |timestamp, digest| {
            let moment = timestamp.hybrid_time();
            if sum.count >= count && moment != last {
                buckets.push(RangeBucket { end: moment, fingerprint: std::mem::take(&mut sum) });
            }
            sum += Fingerprint { count: 1, digest };
            last = moment;
        })?;
        if sum.count > 0 {
            buckets.push(RangeBucket { end: time_range.end, fingerprint: sum });
        }
        Ok(buckets)
    };
    ranges.iter().map(cut).collect()
}

pub(super) fn entries(
    db: &Connection,
    ranges: &[Range<u64>],
    count_max: usize,
) -> Result<Vec<Vec<MessageEntry>>> {
    let (mut lists, mut left) = (Vec::new(), count_max);
    for time_range in ranges {
        if left == 0 {
            break;
        }
        let mut list = Vec::new();
        scan(db, time_range, left, |timestamp, hash| list.push(MessageEntry { timestamp, hash }))?;
        left -= list.len();
        lists.push(list);
    }
    Ok(lists)
}

/// Computes the summary and windows from the contents of all messages. The cursor is the recorded
/// one, or the newest row's if that is higher.
fn compute(db: &Connection) -> Result<(VaultSummary, BTreeMap<FingerprintWindow, Fingerprint>)> {
    let mut computed = VaultSummary { cursor: summary(db)?.cursor, ..VaultSummary::default() };
    let mut windows: BTreeMap<FingerprintWindow, Fingerprint> = BTreeMap::new();
    let mut statement = db.prepare("SELECT seq, timestamp, content FROM message ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (timestamp, content) = (timestamp(row, 1)?, blob(row, 2)?);
        let one = Fingerprint::from_message(timestamp, content);
        computed.cursor = computed.cursor.max(row.get::<_, i64>(0)?.cast_unsigned());
        computed.bytes += content.len() as u64;
        computed.fingerprint += one;
        *windows.entry(FingerprintWindow::for_timestamp(timestamp)).or_default() += one;
    }
    Ok((computed, windows))
}

pub(super) fn verify(db: &Connection) -> Result<FingerprintCheck> {
    let (computed, mut windows) = compute(db)?;
    let mut windows_wrong = 0;
    for (window, sum) in recorded(db)? {
        windows_wrong += u64::from(windows.remove(&window) != Some(sum));
    }
    windows_wrong += windows.len() as u64;
    Ok(FingerprintCheck { recorded: summary(db)?, computed, windows_wrong })
}

pub(super) fn rebuild(db: &Connection) -> Result<()> {
    rehash(db)?;
    let (computed, windows) = compute(db)?;
    db.execute("DELETE FROM fingerprint_window", [])?;
    for (window, sum) in windows {
        write(db, window, sum)?;
    }
    write_summary(db, computed)
}

/// Corrects the hashes of contents that were changed by hand.
fn rehash(db: &Connection) -> Result<()> {
    let mut wrong = Vec::new();
    let mut statement = db.prepare("SELECT seq, timestamp, content, hash FROM message")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let hash = Fingerprint::from_message(timestamp(row, 1)?, blob(row, 2)?).digest_bytes();
        if blob(row, 3)? != hash {
            wrong.push((row.get::<_, i64>(0)?, hash));
        }
    }
    for (seq, hash) in wrong {
        db.execute("UPDATE message SET hash = ?2 WHERE seq = ?1", (seq, &hash[..]))?;
    }
    Ok(())
}

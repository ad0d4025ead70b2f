//! Conversions between Rust values and PostgreSQL's.

use std::ops::Range;

use accounts::VaultId;
use bytes::BytesMut;
use crdt::{Fingerprint, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::error::{Error, Result, TIMESTAMPS_NAMED_MAX};
use crate::vault::VaultSummary;

/// A vault's id: its 32 hex digits as a `uuid`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SqlUuid(pub(super) u128);

impl From<&VaultId> for SqlUuid {
    fn from(vault: &VaultId) -> Self {
        Self(u128::from_str_radix(vault.as_str(), 16).expect("an id is 32 hex digits"))
    }
}

impl ToSql for SqlUuid {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

/// Bytes, also as elements of an array.
#[derive(Clone, Debug)]
pub(super) struct SqlBytes<T>(pub(super) T);

impl<T: AsRef<[u8]> + std::fmt::Debug> ToSql for SqlBytes<T> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_ref());
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

/// Converts a counter or a time to a `bigint`. A larger value means "past everything".
pub(super) fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Splits a hash into its halves.
pub(super) fn halves(hash: u128) -> (i64, i64) {
    let half = |bytes: &[u8; 8]| i64::from_be_bytes(*bytes);
    let bytes = hash.to_be_bytes();
    let ([high, low], []) = bytes.as_chunks() else { unreachable!("16 bytes are two halves") };
    (half(high), half(low))
}

pub(super) fn hash_of(high: i64, low: i64) -> u128 {
    u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned())
}

/// Combines the sums of the hashes' 32-bit quarters, with their carries.
fn digest(lanes: &[i64]) -> u128 {
    let add = |sum: u128, lane: &i64| (sum << 32).wrapping_add(u128::from(lane.cast_unsigned()));
    lanes.iter().fold(0, add)
}

/// Reads the columns `held, lanes`, from `first` on.
pub(super) fn fingerprint(row: &Row, first: usize) -> Result<Fingerprint> {
    let count = row.try_get::<_, i64>(first)?.cast_unsigned();
    let lanes: Vec<i64> = row.try_get(first + 1)?;
    Ok(Fingerprint { count, digest: digest(&lanes) })
}

/// Reads the columns `newest, held, held_bytes, lanes`, from `first` on.
pub(super) fn summary(row: &Row, first: usize) -> Result<VaultSummary> {
    let cursor = row.try_get::<_, i64>(first)?.cast_unsigned();
    let count = row.try_get::<_, i64>(first + 1)?.cast_unsigned();
    let bytes = row.try_get::<_, i64>(first + 2)?.cast_unsigned();
    let lanes: Vec<i64> = row.try_get(first + 3)?;
    Ok(VaultSummary { cursor, bytes, fingerprint: Fingerprint { count, digest: digest(&lanes) } })
}

pub(super) fn timestamp(bytes: &[u8]) -> Timestamp {
    Timestamp::from_bytes(bytes).expect("`store` alone writes timestamps")
}

/// Converts an error of PostgreSQL to its meaning. `limits` are those of messages and bytes.
pub(super) fn stored_error(error: Error, limits: (u64, u64)) -> Error {
    let Error::Postgres(refused) = &error else { return error };
    let Some(refused) = refused.as_db_error() else { return error };
    // PL/Proxy puts text before the shard's own detail.
    let said = refused.detail().and_then(|detail| detail.split_whitespace().last());
    let said = said.unwrap_or_default();
    match refused.code().code() {
        "WR001" => {
            let parse = |hex: &str| u128::from_str_radix(hex, 16).ok().map(u128::to_be_bytes);
            let timestamps = said.split(',').filter_map(parse).map(|bytes| timestamp(&bytes));
            let timestamps: Vec<_> = timestamps.take(TIMESTAMPS_NAMED_MAX).collect();
            if timestamps.is_empty() { error } else { Error::TimestampConflict { timestamps } }
        }
        "WR002" => match said.split_once(',') {
            Some((what, wanted)) => {
                let (what, limit) = match what {
                    "messages" => ("messages", limits.0),
                    _ => ("bytes", limits.1),
                };
                Error::QuotaExceeded { what, limit, wanted: wanted.parse().unwrap_or(u64::MAX) }
            }
            None => error,
        },
        "WR005" => Error::StaleCursor,
        _ => error,
    }
}

/// Whether the data from which a change was computed has changed.
pub(super) fn is_outdated(error: &Error) -> bool {
    has_code(error, "WR003")
}

/// Whether another process has removed a blob's chunks.
pub(super) fn is_incomplete(error: &Error) -> bool {
    has_code(error, "WR004")
}

fn has_code(error: &Error, code: &str) -> bool {
    let Error::Postgres(refused) = error else { return false };
    refused.code().is_some_and(|found| found.code() == code)
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let is_lost = || {
            let cause = std::error::Error::source(&error);
            error.is_closed() || cause.is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        };
        // PL/Proxy's own failures all have this code: it did not reach the shard.
        let is_of_plproxy =
            error.as_db_error().is_some_and(|error| error.message().starts_with("PL/Proxy"));
        match error.code().map(tokio_postgres::error::SqlState::code) {
            Some("XX000") if is_of_plproxy => Self::Unavailable(error.into()),
            // Canceled by a timeout, lock not available, serialization failure, deadlock; below: no
            // resources.
            Some("57014" | "55P03" | "40001" | "40P01") => Self::Busy(error.into()),
            Some(code) if code.starts_with("53") => Self::Busy(error.into()),
            // Shutting down, crashed, starting; or a standby that received a write.
            Some("57P01" | "57P02" | "57P03" | "25006") => Self::Unavailable(error.into()),
            Some(code) if code.starts_with("08") => Self::Unavailable(error.into()),
            Some(_) => Self::Postgres(error),
            None if is_lost() => Self::Unavailable(error.into()),
            None => Self::Postgres(error),
        }
    }
}

/// Returns the starts and the ends of time ranges as the first bytes of timestamps.
pub(crate) fn bounds(ranges: &[Range<u64>]) -> (Vec<[u8; 8]>, Vec<[u8; 8]>) {
    ranges.iter().map(|range| (range.start.to_be_bytes(), range.end.to_be_bytes())).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_lanes_make_the_hash_again() {
        for hash in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
            let (high, low) = halves(hash);
            assert_eq!(hash_of(high, low), hash);
            let lane = |shift: u32| ((hash >> shift) & 0xffff_ffff) as i64;
            let lanes = [lane(96), lane(64), lane(32), lane(0)];
            assert_eq!(digest(&lanes), hash);
            let many = lanes.map(|lane| lane * 1_000_003);
            assert_eq!(digest(&many), hash.wrapping_mul(1_000_003), "carries");
        }
    }
}

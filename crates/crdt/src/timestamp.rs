//! Represents a timestamp: a hybrid logical clock reading, and the identity of a message.
//!
//! ```text
//! bits   127 … 80     79 … 64     63 … 0
//!        millis       counter     node
//! ```
//! A timestamp is one `u128`, so that comparing integers, comparing bytes and comparing text all
//! order by time (`docs/reference/formats/1-timestamp.md`).
//!
//! # Invariants
//! - `millis` never exceeds [`Timestamp::MILLIS_MAX`]: every timestamp has a text form.

use std::fmt;
use std::str::FromStr;

use time::{Date, Month, OffsetDateTime};

/// The random 64-bit id of a device within a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The time and the node id of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(u128);

/// The error for a text or a byte string that is not a canonical timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical timestamp")]
pub struct ParseTimestampError;

impl Timestamp {
    /// The last millisecond that the text form can represent: 9999-12-31T23:59:59.999Z.
    pub const MILLIS_MAX: u64 = 253_402_300_799_999;
    /// The number of bytes of the binary form.
    pub const BYTES: usize = 16;
    /// The number of characters of the text form.
    pub const TEXT_LENGTH: usize = 46;
    /// The smallest timestamp; no device sends it.
    pub const ZERO: Self = Self(0);

    /// Creates a timestamp, or returns `None` if `millis` is past [`Self::MILLIS_MAX`].
    pub fn new(millis: u64, counter: u16, node: NodeId) -> Option<Self> {
        (millis <= Self::MILLIS_MAX).then(|| {
            Self(u128::from(millis) << 80 | u128::from(counter) << 64 | u128::from(node.0))
        })
    }

    /// Returns the milliseconds since 1970.
    pub fn millis(self) -> u64 {
        (self.0 >> 80) as u64
    }

    /// Returns the counter within the millisecond.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 16 bits")]
    pub fn counter(self) -> u16 {
        (self.0 >> 64) as u16
    }

    /// Returns the node id of the device that created it.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 64 bits")]
    pub fn node_id(self) -> NodeId {
        NodeId(self.0 as u64)
    }

    /// Returns milliseconds and counter as one number: the timestamp without its node id.
    pub fn hybrid_time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the first timestamp of a hybrid time, or `None` past the year 9999.
    pub fn first_at(hybrid_time: u64) -> Option<Self> {
        Self::from_bytes(&(u128::from(hybrid_time) << 64).to_be_bytes()).ok()
    }

    /// Returns the timestamp of the same hybrid time with another node id, which a copied file uses
    /// to make its changes distinct.
    #[must_use]
    pub fn with_node_id(self, node: NodeId) -> Self {
        Self(self.0 >> 64 << 64 | u128::from(node.0))
    }

    /// Returns the 16 bytes, big-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }

    /// Parses the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseTimestampError> {
        let bytes = <[u8; Self::BYTES]>::try_from(bytes);
        let timestamp = bytes.map(|bytes| Self(u128::from_be_bytes(bytes)));
        timestamp.ok().filter(|t| t.millis() <= Self::MILLIS_MAX).ok_or(ParseTimestampError)
    }

    /// Returns the text form in ASCII, as [`fmt::Display`] writes it, without an allocation.
    pub fn to_text(self) -> [u8; Self::TEXT_LENGTH] {
        let hybrid_time =
            OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.millis()) * 1_000_000)
                .expect("millis is within the years 1970 to 9999");
        let (year, month, day) = hybrid_time.to_calendar_date();
        let (hour, minute, second, milli) = hybrid_time.to_hms_milli();
        let mut text = *b"0000-00-00T00:00:00.000Z-0000-0000000000000000";
        decimal(&mut text[0..4], year.unsigned_abs());
        decimal(&mut text[5..7], u32::from(u8::from(month)));
        decimal(&mut text[8..10], u32::from(day));
        decimal(&mut text[11..13], u32::from(hour));
        decimal(&mut text[14..16], u32::from(minute));
        decimal(&mut text[17..19], u32::from(second));
        decimal(&mut text[20..23], u32::from(milli));
        hex(&mut text[25..29], u64::from(self.counter()), b"0123456789ABCDEF");
        hex(&mut text[30..46], self.node_id().0, b"0123456789abcdef");
        text
    }

    /// Returns whether the timestamp belongs to a row that existed before its table was tracked.
    pub fn is_backfill(self) -> bool {
        self.millis() < BackfillClock::MILLIS_END
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.to_text()).expect("a timestamp's text is ASCII"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    /// Parses only the canonical text, as [`fmt::Display`] writes it.
    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        let parsed = parse_lenient(text).ok_or(ParseTimestampError)?;
        // Formatting it again defines what is canonical: case, signs, spaces, separators.
        if parsed.to_text() == text.as_bytes() { Ok(parsed) } else { Err(ParseTimestampError) }
    }
}

/// Fills `text` with the last digits of `number`.
fn decimal(text: &mut [u8], mut number: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Fills `text` with the last digits of `number`.
fn hex(text: &mut [u8], mut number: u64, digits: &[u8; 16]) {
    for digit in text.iter_mut().rev() {
        *digit = digits[(number % 16) as usize];
        number /= 16;
    }
}

fn parse_lenient(text: &str) -> Option<Timestamp> {
    if text.len() != Timestamp::TEXT_LENGTH || !text.is_ascii() {
        return None;
    }
    let month = Month::try_from(text[5..7].parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(text[0..4].parse().ok()?, month, text[8..10].parse().ok()?);
    let hour = text[11..13].parse().ok()?;
    let minute = text[14..16].parse().ok()?;
    let second = text[17..19].parse().ok()?;
    let milli = text[20..23].parse().ok()?;
    let hybrid_time = date.ok()?.with_hms_milli(hour, minute, second, milli).ok()?.assume_utc();
    let millis = u64::try_from(hybrid_time.unix_timestamp_nanos() / 1_000_000).ok()?;
    let counter = u16::from_str_radix(&text[25..29], 16).ok()?;
    let node = u64::from_str_radix(&text[30..46], 16).ok()?;
    Timestamp::new(millis, counter, NodeId(node))
}

/// A clock for rows that existed before their table was tracked: the first day of 1970.
///
/// These timestamps lose to every tracked change. `next` starts at 0 and counts up, 65,536 to the
/// millisecond.
#[derive(Clone, Copy, Debug)]
pub struct BackfillClock {
    /// The number of timestamps that this device has used.
    pub next: u64,
    /// The node id of this device.
    pub node_id: NodeId,
}

impl BackfillClock {
    /// The first millisecond that is not backfill, which leaves room for 5.6 × 10¹² rows.
    pub const MILLIS_END: u64 = 86_400_000;

    /// Returns the next unused timestamp, or `None` when the day is full.
    #[expect(clippy::cast_possible_truncation, reason = "the low 16 bits are the counter")]
    pub fn next_timestamp(&mut self) -> Option<Timestamp> {
        // 0 is never sent: cursors and ranges use it as "before everything".
        self.next += 1;
        let millis = self.next >> 16;
        (millis < Self::MILLIS_END)
            .then(|| Timestamp::new(millis, self.next as u16, self.node_id))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_timestamp() -> impl Strategy<Value = Timestamp> {
        (0..=Timestamp::MILLIS_MAX, any::<u16>(), any::<u64>()).prop_map(
            |(millis, counter, node)| Timestamp::new(millis, counter, NodeId(node)).unwrap(),
        )
    }

    proptest! {
        #[test]
        fn text_and_bytes_round_trip(t in any_timestamp()) {
            prop_assert_eq!(t.to_string().parse(), Ok(t));
            prop_assert_eq!(t.to_string().len(), Timestamp::TEXT_LENGTH);
            prop_assert_eq!(Timestamp::from_bytes(&t.to_bytes()), Ok(t));
        }

        #[test]
        fn time_bytes_and_text_order_alike(a in any_timestamp(), b in any_timestamp()) {
            prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn any_text_is_refused_or_canonical(text in "[0-9TZ:.A-Fa-f-]{46}") {
            if let Ok(t) = text.parse::<Timestamp>() {
                prop_assert_eq!(t.to_string(), text);
            }
        }
    }

    #[test]
    fn the_documented_example_reads_and_writes() {
        let text = "2026-11-21T06:30:00.123Z-00AB-a1b2c3d4e5f60718";
        let t: Timestamp = text.parse().unwrap();
        assert_eq!((t.millis(), t.counter()), (1_795_242_600_123, 0xAB));
        assert_eq!(t.node_id(), NodeId(0xa1b2_c3d4_e5f6_0718));
        assert_eq!(t.to_string(), text);
    }

    #[test]
    fn other_spellings_of_a_moment_are_refused() {
        for text in [
            "2026-11-21T06:30:00.123Z-00ab-a1b2c3d4e5f60718",
            "2026-11-21T06:30:00.123Z-00AB-A1B2C3D4E5F60718",
            "2026-11-21 06:30:00.123Z-00AB-a1b2c3d4e5f60718",
            "2026-11-21T06:30:00.123z-00AB-a1b2c3d4e5f60718",
            "2026-02-30T06:30:00.123Z-00AB-a1b2c3d4e5f60718",
            "2026-11-21T24:00:00.123Z-00AB-a1b2c3d4e5f60718",
            "2026-11-21T06:30:60.123Z-00AB-a1b2c3d4e5f60718",
            "1969-12-31T23:59:59.999Z-0000-a1b2c3d4e5f60718",
            "+026-11-21T06:30:00.123Z-00AB-a1b2c3d4e5f60718",
            "2026-11-21T06:30:00.123Z-+0AB-a1b2c3d4e5f60718",
            "2026-11-21T06:30:00.123Z-00AB-a1b2c3d4e5f6071",
            "",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError), "{text}");
        }
    }

    #[test]
    fn bytes_past_the_year_9999_are_refused() {
        assert_eq!(Timestamp::from_bytes(&[0xff; 16]), Err(ParseTimestampError));
        assert_eq!(Timestamp::from_bytes(&[0; 15]), Err(ParseTimestampError));
    }

    #[test]
    fn the_baseline_counts_up_within_its_day() {
        let mut baseline = BackfillClock { next: 65_534, node_id: NodeId(7) };
        let first = baseline.next_timestamp().unwrap();
        let second = baseline.next_timestamp().unwrap();
        assert_eq!((first.millis(), first.counter()), (0, 65_535));
        assert_eq!((second.millis(), second.counter()), (1, 0));
        assert!(first < second && second.is_backfill());
        let mut full = BackfillClock { next: BackfillClock::MILLIS_END << 16, node_id: NodeId(7) };
        assert_eq!(full.next_timestamp(), None);
    }

    #[test]
    fn another_node_keeps_the_moment() {
        let t = Timestamp::new(5, 6, NodeId(7)).unwrap();
        assert_eq!(
            t.with_node_id(NodeId(u64::MAX)),
            Timestamp::new(5, 6, NodeId(u64::MAX)).unwrap()
        );
    }
}

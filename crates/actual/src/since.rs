//! From where an app wants messages: any text, compared with timestamps as text.

use crdt::Timestamp;

/// The smallest timestamp whose text sorts after `since`, byte by byte; `None` if there is none.
///
/// Text and binary form sort alike, so that this is where an answer begins.
pub fn after(since: &str) -> Option<Timestamp> {
    let is_after = |number| {
        timestamp(number).is_some_and(|timestamp| timestamp.to_text()[..] > *since.as_bytes())
    };
    // The greatest number that is no timestamp any more, so the search stays among timestamps.
    let end = u128::from(Timestamp::MILLIS_MAX + 1) << 80;
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        if is_after(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    timestamp(low)
}

fn timestamp(number: u128) -> Option<Timestamp> {
    Timestamp::from_bytes(&number.to_be_bytes()).ok()
}

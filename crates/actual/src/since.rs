//! Finds the first message that an app requests: it sends any text, which is compared with
//! timestamps as text.

use crdt::Timestamp;

/// Returns the smallest timestamp whose text sorts after `since`, byte by byte; `None` if there is
/// none.
///
/// Text and binary form sort alike, so a response begins at this timestamp.
pub fn after(since: &str) -> Option<Timestamp> {
    let is_after = |number| {
        timestamp(number).is_some_and(|timestamp| timestamp.to_text()[..] > *since.as_bytes())
    };
    // The smallest number above all timestamps, so the search stays among timestamps.
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

/// Returns the next timestamp after this one.
pub fn following(timestamp: Timestamp) -> Option<Timestamp> {
    let number = u128::from_be_bytes(timestamp.to_bytes()) + 1;
    Timestamp::from_bytes(&number.to_be_bytes()).ok()
}

fn timestamp(number: u128) -> Option<Timestamp> {
    Timestamp::from_bytes(&number.to_be_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use crdt::NodeId;
    use proptest::prelude::*;

    use super::*;

    /// Returns the previous timestamp, if there is one.
    fn before(t: Timestamp) -> Option<Timestamp> {
        timestamp(u128::from_be_bytes(t.to_bytes()).checked_sub(1)?)
    }

    /// Checks `after` against its definition: the text of its result is greater than `since`, and
    /// the text of the timestamp before is not.
    fn is_right(since: &str) -> bool {
        let last = Timestamp::new(Timestamp::MILLIS_MAX, u16::MAX, NodeId(u64::MAX)).unwrap();
        let Some(found) = after(since) else { return *last.to_string() <= *since };
        let is_first = before(found).is_none_or(|below| *below.to_string() <= *since);
        is_first && *found.to_string() > *since
    }

    #[test]
    fn a_timestamp_is_followed_by_the_next_one() {
        let at = |text: &str| after(text).unwrap().to_string();
        let node = "2024-03-05T10:20:30.123Z-00AB-ffffffffffffffff";
        assert_eq!(at(node), "2024-03-05T10:20:30.123Z-00AC-0000000000000000");
        let counter = "2024-02-29T23:59:59.999Z-FFFF-ffffffffffffffff";
        assert_eq!(at(counter), "2024-03-01T00:00:00.000Z-0000-0000000000000000");
        assert_eq!(after("9999-12-31T23:59:59.999Z-FFFF-ffffffffffffffff"), None);
    }

    #[test]
    fn texts_that_are_no_timestamps_have_their_place() {
        let at = |text: &str| after(text).unwrap().to_string();
        assert_eq!(at(""), Timestamp::ZERO.to_string());
        assert_eq!(at("2024"), "2024-01-01T00:00:00.000Z-0000-0000000000000000");
        assert_eq!(at("2024-03-05"), "2024-03-05T00:00:00.000Z-0000-0000000000000000");
        assert_eq!(at("2024-02-30"), "2024-03-01T00:00:00.000Z-0000-0000000000000000");
        let longer = "2024-03-05T10:20:30.123Z-0000-0000000000000000 and more";
        assert_eq!(at(longer), "2024-03-05T10:20:30.123Z-0000-0000000000000001");
        // Lower case sorts after every counter that begins with a digit or an upper-case letter.
        let lower = "2024-03-05T10:20:30.123Z-a";
        assert_eq!(at(lower), "2024-03-05T10:20:30.124Z-0000-0000000000000000");
        // Upper case sorts before the letters of a node id.
        let upper = "2024-03-05T10:20:30.123Z-0000-A000000000000000";
        assert_eq!(at(upper), "2024-03-05T10:20:30.123Z-0000-a000000000000000");
        assert_eq!(after("undefined"), None);
        assert_eq!(after("ÿ"), None);
    }

    proptest! {
        #[test]
        fn any_text(since: String) {
            prop_assert!(is_right(&since));
        }

        #[test]
        fn text_like_a_timestamp(since in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9:.TZA-Fa-f-]{0,40}") {
            prop_assert!(is_right(&since));
        }

        #[test]
        fn a_timestamp_with_a_character_changed(
            number in 0..=u128::MAX,
            index in 0..Timestamp::TEXT_LENGTH,
            character in prop::char::range(' ', '~'),
        ) {
            let millis = u64::try_from(number >> 80).unwrap() % (Timestamp::MILLIS_MAX + 1);
            let rest = number << 48 >> 48;
            let mut text = timestamp(u128::from(millis) << 80 | rest).unwrap().to_string();
            prop_assert!(is_right(&text));
            text.replace_range(index..=index, &character.to_string());
            prop_assert!(is_right(&text));
            text.truncate(index);
            prop_assert!(is_right(&text));
        }
    }
}

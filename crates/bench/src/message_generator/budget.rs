//! Generates the messages that Actual's apps write when they import transactions: ten cells of a
//! row for each.
//!
//! The cells and the lengths of their values follow the observed output of `@actual-app/api`:
//! 10,107 messages for 1,000 transactions, 131 bytes each on the wire.

use bytes::Bytes;
use prost::Message as _;

/// The number of cells of an imported transaction.
pub(crate) const MESSAGES_PER_TRANSACTION: u64 = 10;
const ACCOUNTS_COUNT: u64 = 5;
const PAYEES_COUNT: u64 = 200;
/// The first numbers of account and payee ids, which are different from those of transactions.
const ACCOUNTS: u64 = 1 << 40;
const PAYEES: u64 = 2 << 40;
const FIRST_DAY: u64 = 20_200_901;
const SORT_ORDER: u64 = 1_600_000_000_000;

/// A cell; its value begins with `0:` for null, `N:` for a number, `S:` for a text.
#[derive(Clone, PartialEq, prost::Message)]
struct BudgetCell {
    #[prost(string, tag = "1")]
    dataset: String,
    #[prost(string, tag = "2")]
    row: String,
    #[prost(string, tag = "3")]
    column: String,
    #[prost(string, tag = "4")]
    value: String,
}

/// Returns the content of message number `index`.
pub(super) fn content(index: u64) -> Bytes {
    let transaction = index / MESSAGES_PER_TRANSACTION;
    let (column, value) = match index % MESSAGES_PER_TRANSACTION {
        0 => ("acct", format!("S:{}", uuid(ACCOUNTS + transaction % ACCOUNTS_COUNT))),
        1 => ("date", format!("N:{}", FIRST_DAY + transaction % 28)),
        2 => ("description", format!("S:{}", uuid(PAYEES + transaction % PAYEES_COUNT))),
        3 => ("amount", format!("N:-{}", 100 + mixed(transaction) % 100_000)),
        4 => ("category", "0:".to_owned()),
        5 => ("notes", "0:".to_owned()),
        6 => ("imported_description", format!("S:Shop {}", mixed(transaction) % 1_000_000)),
        7 => ("financial_id", format!("S:{transaction:012}")),
        8 => ("cleared", "N:1".to_owned()),
        _ => ("sort_order", format!("N:{}", SORT_ORDER + transaction)),
    };
    let cell = BudgetCell {
        dataset: "transactions".to_owned(),
        row: uuid(transaction),
        column: column.to_owned(),
        value,
    };
    cell.encode_to_vec().into()
}

/// Returns the `UUIDv4` of a number.
fn uuid(number: u64) -> String {
    let (high, low) = (mixed(number), mixed(!number));
    let (time, middle, version) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
    let (variant, node) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{time:08x}-{middle:04x}-4{version:03x}-{variant:04x}-{node:012x}")
}

/// Returns a pseudorandom number for each number: `SplitMix64`.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_ten_cells_of_a_row() {
        let cells: Vec<BudgetCell> =
            (20..30).map(|index| BudgetCell::decode(content(index)).unwrap()).collect();
        assert!(cells.iter().all(|cell| cell.row == uuid(2) && cell.row.len() == 36), "{cells:?}");
        let columns: std::collections::BTreeSet<&str> =
            cells.iter().map(|cell| cell.column.as_str()).collect();
        assert_eq!(columns.len(), 10);
        assert_ne!(uuid(2), uuid(3));
    }

    #[test]
    fn messages_are_as_long_as_those_that_were_seen() {
        // An envelope adds 53 bytes to a content: a timestamp of 46 letters and the framing.
        let bytes: usize = (0..1_000).map(|index| 53 + content(index).len()).sum();
        assert!((128_000..134_000).contains(&bytes), "{bytes}");
    }
}

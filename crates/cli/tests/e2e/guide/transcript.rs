//! Printed text, compared with the text in a document: numbers and what depends on the machine may
//! differ.

/// Names of file systems. Each machine has its own.
const FILE_SYSTEMS: [&str; 6] = ["ext4", "tmpfs", "overlay", "xfs", "btrfs", "zfs"];

/// The words of a text, with `#` for each number.
fn words(text: &str) -> String {
    let (mut words, mut number) = (String::new(), String::new());
    let is_file_system = |word: &&str| FILE_SYSTEMS.contains(word);
    let joined = text.split_whitespace();
    let joined = joined.map(|word| if is_file_system(&word) { "FILE-SYSTEM" } else { word });
    let joined = joined.collect::<Vec<_>>().join(" ");
    for character in joined.chars().chain([' ']) {
        let is_separator = matches!(character, '.' | ',') && !number.is_empty();
        if character.is_ascii_digit() || is_separator {
            number.push(character);
            continue;
        }
        if !number.is_empty() {
            words.push('#');
            words.push_str(&number[number.trim_end_matches(['.', ',']).len()..]);
            number.clear();
        }
        words.push(character);
    }
    words.trim_end().to_owned()
}

/// Compares what a command printed with what a document says that it prints. `…` in the document
/// stands for any text.
pub(crate) fn check(command: &str, expected: &str, printed: &str) {
    let printed = words(printed);
    let expected = words(expected);
    let mut parts = expected.split('…').map(str::trim);
    let start = parts.next().unwrap_or_default();
    let rest = printed.strip_prefix(start);
    let rest = parts.try_fold(rest, |rest, part| {
        let rest = rest?;
        Some(rest.find(part).map(|at| &rest[at + part.len()..]))
    });
    let is_equal = rest.flatten().is_some_and(|rest| rest.is_empty() || expected.ends_with('…'));
    assert!(
        is_equal,
        "`{command}` does not print what the document says.\nDocument: {expected}\nPrinted: {printed}"
    );
}

#[test]
fn numbers_may_differ_and_words_may_not() {
    check("", "12 rows, 3.5 MB in a.db…", "1,200 rows, 12 MB\n in a.db, done");
    check("", "a … of 3 b", "a lot of 7 b");
    for printed in ["12 lines", "12 rows more", "rows", ""] {
        let differs = std::panic::catch_unwind(|| check("", "12 rows", printed));
        assert!(differs.is_err(), "{printed}");
    }
}

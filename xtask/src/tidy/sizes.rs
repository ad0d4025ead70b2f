//! Keeps files small with a ratchet: a file over the limit is recorded with its size and may not
//! grow past it.
//!
//! Lines of code and comments count, without inline test modules. Test files have no limit.

use std::collections::BTreeMap;

use super::finding::TidyFinding;
use super::rust_lexer::outside_test_modules;
use super::source_tree::{SourceFile, SourceTree};

const RULE: &str = "size";
const RECORDS: &str = "xtask/tidy-sizes.txt";

/// The number of lines to aim for, and the maximum that no record excuses.
struct SizeLimit {
    target: usize,
    cap: usize,
}

const FILE: SizeLimit = SizeLimit { target: 400, cap: 800 };
const MAIN: SizeLimit = SizeLimit { target: 60, cap: 100 };

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut records = read_records(tree, &mut findings);
    for file in tree.rust_files().filter(|file| !is_test(&file.path)) {
        let record = records.remove(file.path.as_str());
        findings.extend(check_file(file, record));
    }
    for (path, (line, _)) in records {
        let instead = format!("delete this line: `{path}` does not exist");
        findings.push(TidyFinding::new(RECORDS, line, RULE, instead));
    }
    findings
}

/// Reads the records: path → (line in the list, recorded size).
fn read_records<'a>(
    tree: &'a SourceTree,
    findings: &mut Vec<TidyFinding>,
) -> BTreeMap<&'a str, (usize, usize)> {
    let mut records = BTreeMap::new();
    let Some(list) = tree.get(RECORDS) else { return records };
    for (number, line) in list.numbered_lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = line.split_once(' ').and_then(|(path, size)| Some((path, size.parse().ok()?)));
        match parsed {
            Some((path, size)) => drop(records.insert(path, (number, size))),
            None => findings.push(TidyFinding::new(RECORDS, number, RULE, "write `path lines`")),
        }
    }
    records
}

fn check_file(file: &SourceFile, record: Option<(usize, usize)>) -> Option<TidyFinding> {
    let limit = if file.path.ends_with("/main.rs") { MAIN } else { FILE };
    let lines = file.rust_lines();
    let size = outside_test_modules(&lines).iter().filter(|(_, line)| !line.is_blank()).count();
    let finding = |instead| Some(TidyFinding::new(&file.path, 1, RULE, instead));
    if size > limit.cap {
        return finding(format!("{size} lines: split it; the absolute maximum is {}", limit.cap));
    }
    match record {
        None if size > limit.target => finding(format!(
            "{size} lines, the limit is {}: split it, or record `{} {size}` in {RECORDS} with a \
             reason",
            limit.target, file.path
        )),
        Some((_, recorded)) if size > recorded => finding(format!(
            "{size} lines, grown from {recorded} and over the limit: move code out"
        )),
        Some((line, _)) if size <= limit.target => {
            let instead = format!("delete this line: `{}` is within the limit", file.path);
            Some(TidyFinding::new(RECORDS, line, RULE, instead))
        }
        _ => None,
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_size(path: &str, size: usize, records: &str) -> Vec<String> {
        let text = "// line\n\nuse a;\n".repeat(size / 2);
        let tree = SourceTree::from_files(&[(path, &text), (RECORDS, records)]);
        check(&tree).iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn a_file_may_not_pass_the_aim_without_a_record() {
        assert!(check_size("crates/a/src/x.rs", 400, "").is_empty());
        assert_eq!(check_size("crates/a/src/x.rs", 402, ""), ["crates/a/src/x.rs:1"]);
        assert!(check_size("crates/a/src/main.rs", 60, "").is_empty());
        assert_eq!(check_size("crates/a/src/main.rs", 62, ""), ["crates/a/src/main.rs:1"]);
    }

    #[test]
    fn a_recorded_file_may_not_grow() {
        let records = "# why\ncrates/a/src/x.rs 500\n";
        assert!(check_size("crates/a/src/x.rs", 500, records).is_empty());
        assert_eq!(check_size("crates/a/src/x.rs", 502, records), ["crates/a/src/x.rs:1"]);
        let too_big = check_size("crates/a/src/x.rs", 802, "crates/a/src/x.rs 900");
        assert_eq!(too_big, ["crates/a/src/x.rs:1"]);
    }

    #[test]
    fn stale_and_broken_records_are_found() {
        let at_line_1 = ["xtask/tidy-sizes.txt:1"];
        assert_eq!(check_size("crates/a/src/x.rs", 10, "crates/a/src/x.rs 500"), at_line_1);
        assert_eq!(check_size("crates/a/src/x.rs", 10, "crates/a/src/gone.rs 500"), at_line_1);
        assert_eq!(check_size("crates/a/src/x.rs", 10, "nonsense"), at_line_1);
    }

    #[test]
    fn tests_do_not_count() {
        assert!(check_size("crates/a/src/x/tests.rs", 900, "").is_empty());
        assert!(check_size("crates/a/tests/it/x.rs", 900, "").is_empty());
    }
}

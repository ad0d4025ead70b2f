//! Checks that `crdt`, `protocol` and `mail-protocol` do no I/O and read no clock, so that they run
//! in a browser or in a test without a network.

use super::finding::TidyFinding;
use super::rust_lexer::has_word;
use super::source_tree::{SourceFile, SourceTree};

const RULE: &str = "purity";
const PURE_CRATES: &[&str] = &["crdt", "protocol", "mail-protocol"];

/// Names of the outside world, with an alternative for each.
const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "take the bytes as an argument"),
    ("std::net", "leave the network to the caller"),
    ("SystemTime", "take the time as an argument"),
    ("Instant", "take the time as an argument"),
    ("getrandom", "take the random bytes as an argument"),
    ("tokio", "write a plain function or a state machine"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for name in PURE_CRATES {
        let folder = format!("crates/{name}/src/");
        for file in tree.rust_files().filter(|file| file.path.starts_with(&folder)) {
            findings.extend(impure_names(file));
            if file.path == format!("{folder}lib.rs") {
                findings.extend(missing_forbid(file));
            }
        }
    }
    findings
}

fn missing_forbid(file: &SourceFile) -> Option<TidyFinding> {
    let forbids =
        file.rust_lines().iter().any(|line| line.code.contains("#![forbid(unsafe_code)]"));
    (!forbids).then(|| TidyFinding::new(&file.path, 1, RULE, "add `#![forbid(unsafe_code)]`"))
}

fn impure_names(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let lines = file.rust_lines();
    for (index, line) in lines.iter().enumerate() {
        // `use std::{fs, net}` on one line is the same as two imports.
        let code = ungroup_std(&line.code);
        for (name, instead) in IMPURE.iter().filter(|(name, _)| has_word(&code, name)) {
            let instead = format!("no `{name}` in a pure crate: {instead}");
            findings.push(TidyFinding::new(&file.path, index + 1, RULE, instead));
        }
    }
    findings
}

/// Appends the names in `std::{…}` to the line as full paths, so that a plain search finds them.
fn ungroup_std(code: &str) -> String {
    let mut ungrouped = code.to_owned();
    if let Some((_, group)) = code.split_once("std::{") {
        for name in group.split([',', '{', '}']) {
            ungrouped.push_str(" std::");
            ungrouped.push_str(name.trim());
        }
    }
    ungrouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_code(path: &str, code: &str) -> Vec<usize> {
        let text = format!("#![forbid(unsafe_code)]\n{code}");
        check(&SourceTree::from_files(&[(path, &text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn impure_names_are_found() {
        for code in [
            "use std::fs::File;",
            "let x = std::net::TcpStream::connect(a);",
            "use std::{collections::BTreeMap, fs};",
            "use std::time::{Duration, Instant};",
            "fn f(now: SystemTime) {}",
            "async fn f() { tokio::spawn(g()); }",
        ] {
            assert_eq!(check_code("crates/crdt/src/lib.rs", code), [2], "{code}");
        }
    }

    #[test]
    fn comments_strings_and_other_crates_may_name_them() {
        assert!(
            check_code("crates/protocol/src/a.rs", "// unlike std::fs\nf(\"tokio\");").is_empty()
        );
        assert!(check_code("crates/engine/src/lib.rs", "use std::fs::File;").is_empty());
    }

    #[test]
    fn a_pure_crate_forbids_unsafe() {
        let found = check(&SourceTree::from_files(&[(
            "crates/crdt/src/lib.rs",
            "//! #![forbid(unsafe_code)]",
        )]));
        assert_eq!(found.len(), 1);
        assert!(check_code("crates/crdt/src/lib.rs", "").is_empty());
    }
}

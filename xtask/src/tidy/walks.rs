//! Checks the walks through the code (`docs/internals/walks.md`): every name in the third column of
//! a table occurs in one of the files in the second column.
//!
//! # Not here
//! - Whether these files exist → `paths.rs`.
//! - Whether they are called in this order: only a reader can check that.

use super::finding::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

const WALKS: &str = "docs/internals/walks.md";

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let Some(walks) = tree.get(WALKS) else { return Vec::new() };
    let mut findings = Vec::new();
    for (number, line) in walks.numbered_lines() {
        // The first part is the text before the table.
        let cells: Vec<&str> = line.split('|').collect();
        let &[_, _, files, names, ..] = &cells[..] else { continue };
        let files: Vec<&SourceFile> = code(files).filter_map(|path| tree.get(path)).collect();
        if files.is_empty() {
            continue;
        }
        for name in code(names).filter(|name| !files.iter().any(|file| has(file, name))) {
            let advice =
                format!("`{name}` is not in the files of this row: name the current function");
            findings.push(TidyFinding::new(WALKS, number, "walk", advice));
        }
    }
    findings
}

/// Returns the parts of a cell in backticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns whether all parts of a name (`Type::function`, `Class.#method`) are words of the file.
fn has(file: &SourceFile, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let parts = name.split(|c: char| !is_word(c)).filter(|part| !part.is_empty());
    parts.into_iter().all(|part| file.text.split(|c: char| !is_word(c)).any(|word| word == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_row(row: &str) -> usize {
        let files = [
            (WALKS, row),
            ("crates/a/src/a.rs", "impl Engine { fn run_all() {} }"),
            ("web/b.ts", "class Leader { #answer() {} }"),
        ];
        check(&SourceTree::from_files(&files)).len()
    }

    #[test]
    fn a_row_names_what_is_in_its_files() {
        assert_eq!(check_row("| 1 | `crates/a/src/a.rs` | `Engine::run_all` | Runs `gone`. |"), 0);
        assert_eq!(check_row("| 1 | `crates/a/src/a.rs`, `web/b.ts` | `Leader.#answer` | |"), 0);
        assert_eq!(check_row("| 1 | `web/b.ts` | `Engine::run_all` | In another file. |"), 1);
        assert_eq!(check_row("| 1 | `crates/a/src/a.rs` | `run`, `Engine` | A part. |"), 1);
        assert_eq!(check_row("| word | `meaning` | `anything` |"), 0);
    }
}

//! Runs `cargo xtask tidy`, which checks the rules of this project that no compiler checks.
//!
//! Each rule is a plain function from the files of the tree to its findings, in a module of its
//! own, with tests that show it failing. A finding names the place, the rule, and a better
//! alternative.
//!
//! # Not here
//! - Anything that rustc, clippy or cargo-deny can check → `Cargo.toml`, `clippy.toml`,
//!   `deny.toml`.
//! - Comparing the error codes with their document → a test in `protocol`.

mod bans;
mod crate_edges;
mod dead_files;
mod file_kinds;
mod finding;
mod import_cycles;
mod import_graph;
mod markdown;
mod paths;
mod private_text;
mod purity;
mod rust_lexer;
mod sizes;
mod source_tree;
mod type_names;
mod typescript;
mod typescript_imports;
mod walks;
mod wording;

use std::path::Path;

use anyhow::Result;

pub(crate) use self::crate_edges::metadata;
use self::source_tree::SourceTree;
use crate::terminal::print_line;

pub(crate) fn run(root: &Path) -> Result<bool> {
    let tree = SourceTree::load(root)?;
    let mut findings = crate_edges::check(&crate_edges::metadata(root)?, &tree)?;
    for check in [
        bans::check,
        dead_files::check,
        file_kinds::check,
        import_cycles::check,
        markdown::check,
        paths::check,
        private_text::check,
        purity::check,
        sizes::check,
        type_names::check,
        typescript::check,
        walks::check,
        wording::check,
    ] {
        findings.extend(check(&tree));
    }
    findings.sort();
    for finding in &findings {
        print_line(finding)?;
    }
    let noun = if findings.len() == 1 { "finding" } else { "findings" };
    print_line(format_args!("tidy: {} files, {} {noun}", tree.files.len(), findings.len()))?;
    Ok(findings.is_empty())
}

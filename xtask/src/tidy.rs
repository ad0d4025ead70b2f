//! `cargo xtask tidy`: the house's rules that no compiler checks.
//!
//! Each rule is a plain function from the files of the tree to its findings, in a module of its
//! own, with tests that show it failing. A finding names the place, the rule, and what to do
//! instead.
//!
//! # Not here
//! - Anything that rustc, clippy or cargo-deny can check → `Cargo.toml`, `clippy.toml`,
//!   `deny.toml`.
//! - The error codes against their document → a test in `protocol`.

mod bans;
mod dead_files;
mod edges;
mod markdown;
mod private_text;
mod purity;
mod rust;
mod sizes;
mod tree;
mod typescript;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::say;
pub(crate) use edges::metadata;
use tree::Tree;

/// A broken rule: where, which, and what to do instead.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    instead: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, instead: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, rule, instead: instead.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.instead)
    }
}

pub(crate) fn run(root: &Path) -> Result<bool> {
    let tree = Tree::load(root)?;
    let mut findings = edges::check(&edges::metadata(root)?, &tree)?;
    for check in [
        bans::check,
        dead_files::check,
        markdown::check,
        private_text::check,
        purity::check,
        sizes::check,
        typescript::check,
    ] {
        findings.extend(check(&tree));
    }
    findings.sort();
    for finding in &findings {
        say(finding)?;
    }
    say(format_args!("tidy: {} files, {} findings", tree.files.len(), findings.len()))?;
    Ok(findings.is_empty())
}

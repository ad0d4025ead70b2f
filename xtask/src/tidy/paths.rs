//! Checks that each path in backticks, in documents and comments, names an existing file or
//! directory.
//!
//! A path may be from the root (`crates/crdt/`) or the end of one (`crdt/src/clock.rs`,
//! `clock.rs`). The changelog is history and may name removed files.
//!
//! # Not here
//! - Links of documents → `markdown.rs`.

use super::finding::TidyFinding;
use super::markdown::prose_lines;
use super::source_tree::{SourceFile, SourceTree};

const HISTORY: &str = "CHANGELOG.md";

/// The starts of paths that need not end in one of [`EXTENSIONS`].
const FOLDERS: &[&str] =
    &[".ci/", "bench/", "crates/", "docs/", "proto/", "vectors/", "web/", "xtask/"];
const EXTENSIONS: &[&str] = &[".rs", ".ts", ".tsx"];

/// Directories inside the tree that a build creates.
const BUILT: &[&str] = &["web/client/dist"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != HISTORY) {
        for (number, line) in lines_for_readers(file) {
            // Every second part between backticks is code.
            let paths = line.split('`').skip(1).step_by(2).filter(|code| is_path(code));
            for path in paths.filter(|path| !exists(tree, path)) {
                let advice = format!("`{path}` does not exist: correct the path");
                findings.push(TidyFinding::new(&file.path, number, "path", advice));
            }
        }
    }
    findings
}

/// Returns the numbered lines of a document's text, or of a module's comments.
fn lines_for_readers(file: &SourceFile) -> Vec<(usize, String)> {
    if file.is_markdown() {
        let prose = prose_lines(file);
        return prose.into_iter().map(|(number, line)| (number, line.to_owned())).collect();
    }
    if file.is_rust() {
        let lines = file.rust_lines().into_iter().enumerate();
        return lines.map(|(index, line)| (index + 1, line.comment)).collect();
    }
    let is_comment = |line: &str| line.trim_start().starts_with(['/', '*']);
    let lines = file.numbered_lines().filter(|(_, line)| file.is_typescript() && is_comment(line));
    lines.map(|(number, line)| (number, line.to_owned())).collect()
}

fn exists(tree: &SourceTree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let is_built = BUILT.iter().any(|built| path.starts_with(built));
    let end = format!("/{path}");
    is_built || tree.has(path) || tree.files.iter().any(|file| file.path.ends_with(&end))
}

/// Returns whether code is a path. `@scope/package/file.ts` belongs to another repository.
fn is_path(code: &str) -> bool {
    let is_pattern = code.contains(|c: char| c.is_whitespace() || "*{}<>$…:".contains(c));
    let is_placeholder = code.starts_with('@') || code.contains("NAME") || code.contains("/N-");
    let starts = FOLDERS.iter().any(|folder| code.starts_with(folder));
    let ends = EXTENSIONS.iter().any(|end| code.len() > end.len() && code.ends_with(end));
    !is_pattern && !is_placeholder && (starts || ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<usize> {
        let files = [(path, text), ("crates/crdt/src/clock.rs", ""), ("web/plan/src/app.tsx", "")];
        check(&SourceTree::from_files(&files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn documents_name_what_is_there() {
        let check_path = |path: &str| check_text("docs/a.md", &format!("# A\n`{path}`"));
        for path in ["crates/mail/", "docs/gone.md", "gone.rs", "src/lock.rs", "gone.tsx"] {
            assert_eq!(check_path(path), [2], "{path}");
        }
        for path in [
            "crates/crdt/",
            "clock.rs",
            "crdt/src/clock.rs",
            "app.tsx",
            "crates/*/src",
            "`.rs`",
            "a b.rs",
            "docs/reference/formats/N-name.md",
            "@scope/package/gone.ts",
            "web/client/dist",
        ] {
            assert_eq!(check_path(path), [0; 0], "{path}");
        }
        assert_eq!(check_text("docs/a.md", "# A\n```\n`gone.rs`\n```"), [0; 0]);
        assert_eq!(check_text("CHANGELOG.md", "# A\n`gone.rs`"), [0; 0]);
    }

    #[test]
    fn so_do_comments() {
        let text = "//! See `clock.rs`.\n/// And `gone.rs`.\nconst A: &str = \"`gone.rs`\";";
        assert_eq!(check_text("crates/a/src/x.rs", text), [2]);
        let text = "/**\n * See `app.tsx` and `gone.ts`.\n */\nconst a = \"`gone.ts`\";";
        assert_eq!(check_text("web/plan/src/x.ts", text), [2]);
        assert_eq!(check_text("Makefile", "# `gone.rs`"), [0; 0]);
    }
}

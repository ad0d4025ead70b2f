//! Documents: one title each, links that lead somewhere, and a map whose places exist.

use super::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

/// In this document every path in backticks must exist.
const MAP: &str = "ARCHITECTURE.md";

/// What a path in backticks starts with, besides the ones that end in `.rs`.
const FOLDERS: &[&str] =
    &[".ci/", "bench/", "crates/", "docs/", "proto/", "vectors/", "web/", "xtask/"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_markdown()) {
        let prose = prose_lines(file);
        findings.extend(check_title(file, &prose));
        findings.extend(check_links(tree, file, &prose));
        if file.path == MAP {
            findings.extend(check_paths(tree, file, &prose));
        }
    }
    findings
}

/// The numbered lines outside fenced blocks.
fn prose_lines(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut prose = Vec::new();
    for (number, line) in file.numbered_lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if is_fence {
            fenced = !fenced;
        } else if !fenced {
            prose.push((number, line));
        }
    }
    prose
}

fn check_title(file: &SourceFile, prose: &[(usize, &str)]) -> Option<TidyFinding> {
    let titles: Vec<usize> = prose
        .iter()
        .filter(|(_, line)| line.starts_with("# "))
        .map(|(number, _)| *number)
        .collect();
    match titles.as_slice() {
        [_] => None,
        [] => Some(TidyFinding::new(&file.path, 1, "title", "start with one `# ` title")),
        [_, second, ..] => Some(TidyFinding::new(
            &file.path,
            *second,
            "title",
            "make it `##`: a document has one title",
        )),
    }
}

fn check_links(tree: &SourceTree, file: &SourceFile, prose: &[(usize, &str)]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (number, line) in prose {
        for target in link_targets(&without_code(line)) {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            let leads =
                path.is_empty() || resolve(&file.path, path).is_some_and(|path| tree.has(&path));
            if !is_elsewhere && !leads {
                let instead = format!("`{target}` leads nowhere: correct or delete the link");
                findings.push(TidyFinding::new(&file.path, *number, "link", instead));
            }
        }
    }
    findings
}

fn check_paths(tree: &SourceTree, file: &SourceFile, prose: &[(usize, &str)]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (number, line) in prose {
        // Every second piece between backticks is code.
        for code in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
            let path = code.trim_end_matches('/');
            let is_inside = |file: &SourceFile| file.path.ends_with(&format!("/{path}"));
            if !tree.has(path) && !tree.files.iter().any(is_inside) {
                let instead = format!("`{code}` does not exist: name what is there");
                findings.push(TidyFinding::new(&file.path, *number, "path", instead));
            }
        }
    }
    findings
}

fn is_path(code: &str) -> bool {
    let is_pattern = code.contains(|c: char| c.is_whitespace() || "*{}<>$…:".contains(c));
    let starts = FOLDERS.iter().any(|folder| code.starts_with(folder));
    !is_pattern && (starts || code.strip_suffix(".rs").is_some_and(|name| !name.is_empty()))
}

/// The line with its inline code blanked out.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// What `[text](target)` and `[name]: target` point to.
fn link_targets(line: &str) -> Vec<&str> {
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = definition.and_then(|(_, rest)| rest.split_whitespace().next());
    inline.chain(defined).map(|target| target.trim_matches(['<', '>'])).collect()
}

/// A link's path from the root, or nothing if it leaves the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_document(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let tree = SourceTree::from_files(&[
            (path, text),
            ("README.md", "# Readme"),
            ("crates/crdt/src/clock.rs", ""),
            ("docs/formats/http.md", "# HTTP"),
        ]);
        check(&tree).iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_document_has_one_title() {
        assert_eq!(check_document("docs/a.md", "no title"), [(1, "title")]);
        assert_eq!(check_document("docs/a.md", "# One\n\n# Two"), [(3, "title")]);
        assert_eq!(check_document("docs/a.md", "# One\n```\n# a comment\n```\n## Two"), []);
    }

    #[test]
    fn links_lead_somewhere() {
        let check_link = |link: &str| check_document("docs/formats/a.md", &format!("# A\n{link}"));
        for link in ["[a](gone.md)", "[a](../../../out.md)", "[a]: gone.md", "![`a`](gone.png)"] {
            assert_eq!(check_link(link), [(2, "link")], "{link}");
        }
        for link in [
            "[a](http.md#errors)",
            "[a](../../README.md \"title\")",
            "[a](../../crates/crdt/)",
            "[a](https://example.org/gone.md)",
            "[a](#below)",
            "`v[i](gone)`",
            "[a]: ./http.md",
        ] {
            assert_eq!(check_link(link), [], "{link}");
        }
    }

    #[test]
    fn paths_on_the_map_exist() {
        let check_path = |path: &str| check_document("ARCHITECTURE.md", &format!("# A\n`{path}`"));
        for path in ["crates/mail/", "docs/gone.md", "gone.rs", "src/lock.rs"] {
            assert_eq!(check_path(path), [(2, "path")], "{path}");
        }
        for path in
            ["crates/crdt/", "clock.rs", "crdt/src/clock.rs", "crates/*/src", "`.rs`", "a b.rs"]
        {
            assert_eq!(check_path(path), [], "{path}");
        }
        assert_eq!(check_document("README.md", "# A\n`gone.rs`"), []);
    }
}

//! Checks that each document has one title, that its links work, and that links lead to it from the
//! README.
//!
//! # Not here
//! - Paths in backticks → `paths.rs`.

use std::collections::HashSet;

use super::finding::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

/// The document where readers begin.
const START: &str = "README.md";

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_markdown()) {
        let prose = prose_lines(file);
        findings.extend(check_title(file, &prose));
        findings.extend(check_links(tree, file, &prose));
    }
    findings.extend(check_reachable(tree));
    findings
}

/// Reports documents that no reader finds: no chain of links leads there from the README.
fn check_reachable(tree: &SourceTree) -> Vec<TidyFinding> {
    let find = |path: &str| tree.files.iter().find(|file| file.path == path && file.is_markdown());
    let mut reached = HashSet::from([START.to_owned()]);
    let mut waiting = vec![START.to_owned()];
    while let Some(file) = waiting.pop().and_then(|path| find(&path)) {
        for (_, line) in prose_lines(file) {
            for target in link_targets(&without_code(line)) {
                let path = target.split('#').next().unwrap_or_default();
                let linked = resolve(&file.path, path).filter(|path| find(path).is_some());
                waiting.extend(linked.filter(|path| reached.insert(path.clone())));
            }
        }
    }
    let documents = tree.files.iter().filter(|file| file.path.starts_with("docs/"));
    let unreached = documents.filter(|file| file.is_markdown() && !reached.contains(&file.path));
    let advice =
        "not reachable by links from README.md: link it from `docs/README.md` or a page below it";
    unreached.map(|file| TidyFinding::new(&file.path, 1, "unreachable", advice)).collect()
}

/// Returns the numbered lines outside fenced blocks.
pub(super) fn prose_lines(file: &SourceFile) -> Vec<(usize, &str)> {
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
                let instead = format!("`{target}` does not exist: correct or delete the link");
                findings.push(TidyFinding::new(&file.path, *number, "link", instead));
            }
        }
    }
    findings
}

/// Blanks out the inline code of a line.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Returns the targets of `[text](target)` and `[name]: target`.
fn link_targets(line: &str) -> Vec<&str> {
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = definition.and_then(|(_, rest)| rest.split_whitespace().next());
    inline.chain(defined).map(|target| target.trim_matches(['<', '>'])).collect()
}

/// Returns a link's path from the root, or `None` if it leaves the repository.
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
        let readme = format!("# Readme\n[it]({path})");
        let tree = SourceTree::from_files(&[
            (path, text),
            ("README.md", &readme),
            ("crates/crdt/src/clock.rs", ""),
            ("crates/http.md", "# HTTP"),
        ]);
        check(&tree).iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_document_is_reached_from_the_readme() {
        let files = [
            ("README.md", "# Readme\n[a](docs/a.md) `[d](docs/d.md)`"),
            ("docs/a.md", "# A\n[b](b.md#part) [back](../README.md)"),
            ("docs/b.md", "# B"),
            ("docs/c.md", "# C\n[d](d.md)"),
            ("docs/d.md", "# D"),
        ];
        let findings = check(&SourceTree::from_files(&files));
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["docs/c.md", "docs/d.md"]);
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
            "[a](../../crates/http.md#errors)",
            "[a](../../README.md \"title\")",
            "[a](../../crates/crdt/)",
            "[a](https://example.org/gone.md)",
            "[a](#below)",
            "`v[i](gone)`",
            "[a]: ./a.md",
        ] {
            assert_eq!(check_link(link), [], "{link}");
        }
    }
}

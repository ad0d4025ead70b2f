//! The TypeScript of `web/`: narrow lines, small files, and what each module is.
//!
//! # Not here
//! - Types → `cargo xtask web --check`. Notes to oneself → `bans.rs`.

use super::finding::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

const WIDTH_MAX: usize = 100;
const LINES_MAX: usize = 400;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let in_web = tree.files.iter().filter(|file| file.path.starts_with("web/"));
    in_web.filter(|file| file.is_typescript()).flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("/**") {
        let instead = "begin with a `/** … */` that says what this is, and what always holds";
        findings.push(TidyFinding::new(&file.path, 1, "header", instead));
    }
    let size = file.text.lines().filter(|line| !line.trim().is_empty()).count();
    if size > LINES_MAX {
        let instead = format!("{size} lines, {LINES_MAX} at most: split it");
        findings.push(TidyFinding::new(&file.path, 1, "size", instead));
    }
    for (number, line) in file.numbered_lines() {
        let width = line.chars().count();
        if width > WIDTH_MAX {
            let instead = format!("{width} columns, {WIDTH_MAX} at most: break the line");
            findings.push(TidyFinding::new(&file.path, number, "width", instead));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let findings = check(&SourceTree::from_files(&[(path, text)]));
        findings.iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_module_says_what_it_is() {
        assert_eq!(check_text("web/plan/src/a.ts", "const a = 1;"), [(1, "header")]);
        assert_eq!(check_text("web/plan/src/a.tsx", "// A page.\n"), [(1, "header")]);
        assert_eq!(check_text("web/plan/src/a.ts", "/** A page. */\nconst a = 1;"), []);
        assert_eq!(check_text("docs/a.ts", "const a = 1;"), []);
    }

    #[test]
    fn lines_are_narrow_and_files_small() {
        let line = |width: usize| format!("/** A. */\n{}\n", "é".repeat(width));
        assert_eq!(check_text("web/a.ts", &line(100)), []);
        assert_eq!(check_text("web/a.ts", &line(101)), [(2, "width")]);
        let lines = |count: usize| format!("/** A. */\n\n{}", "a;\n".repeat(count - 1));
        assert_eq!(check_text("web/a.tsx", &lines(400)), []);
        assert_eq!(check_text("web/a.tsx", &lines(401)), [(1, "size")]);
    }
}

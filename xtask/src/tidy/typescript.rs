//! Checks the TypeScript of `web/`: narrow lines, small files and functions, and a header in each
//! module.
//!
//! Functions are found by their indentation, which Prettier makes uniform.
//!
//! # Not here
//! - Types → `cargo xtask web --check`.
//! - Notes such as TODO(#1) → `bans.rs`.

use super::finding::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

const WIDTH_MAX: usize = 100;
const LINES_MAX: usize = 400;
/// The size limit of a function without blank lines and comments, as clippy counts those of Rust.
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let in_web = tree.files.iter().filter(|file| file.path.starts_with("web/"));
    in_web.filter(|file| file.is_typescript()).flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("/**") {
        let instead = "begin with a `/** … */` that describes the file and its invariants";
        findings.push(TidyFinding::new(&file.path, 1, "header", instead));
    }
    let size = file.text.lines().filter(|line| !line.trim().is_empty()).count();
    if size > LINES_MAX {
        let instead = format!("{size} lines, the maximum is {LINES_MAX}: split it");
        findings.push(TidyFinding::new(&file.path, 1, "size", instead));
    }
    for (number, size) in long_functions(&file.text) {
        let instead =
            format!("{size} lines, the maximum is {FUNCTION_LINES_MAX}: split the function");
        findings.push(TidyFinding::new(&file.path, number, "function-size", instead));
    }
    for (number, line) in file.numbered_lines() {
        let width = line.chars().count();
        if width > WIDTH_MAX {
            let instead = format!("{width} columns, the maximum is {WIDTH_MAX}: break the line");
            findings.push(TidyFinding::new(&file.path, number, "width", instead));
        }
    }
    findings
}

/// Returns the line and the size of each function that is too long.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let heads =
        lines.iter().enumerate().filter(|(_, line)| is_code(line) && is_function_head(line));
    let functions = heads.map(|(index, line)| {
        let end = format!("{}}}", indentation(line));
        let body = lines[index + 1..].iter().take_while(|line| !line.starts_with(&end));
        // The head and the closing brace count, too.
        (index + 1, 2 + body.filter(|line| is_code(line)).count())
    });
    functions.filter(|(_, size)| *size > FUNCTION_LINES_MAX).collect()
}

/// Returns whether a function's body begins at the end of this line.
fn is_function_head(line: &str) -> bool {
    const STATEMENTS: &[&str] =
        &["if ", "for ", "while ", "switch ", "catch ", "else ", "do ", "try ", "class ", "} "];
    let Some(head) = line.trim().strip_suffix(" {") else { return false };
    if head.ends_with("=>") || head.contains("function ") || head.contains("function(") {
        return true;
    }
    // This is a method, or the last line of a head that spans several.
    !STATEMENTS.iter().any(|statement| head.starts_with(statement))
        && !head.contains(" class ")
        && (head.ends_with(')') || head.contains("): "))
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !["//", "/*", "{/*", "*"].iter().any(|comment| line.starts_with(comment))
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

    #[test]
    fn functions_are_short() {
        let size_of = |head: &str, statements: usize| {
            let body = "  step();\n\n  // A comment.\n".repeat(statements);
            check_text("web/a.ts", &format!("/** A. */\n{head}\n{body}}}\n"))
        };
        let heads = [
            "function run() {",
            "export async function run(x: number): Promise<void> {",
            "const run = (x: number) => {",
            "): Promise<void> {",
            "}: RowProps): JSX.Element {",
            ") {",
        ];
        for head in heads {
            assert_eq!(size_of(head, 68), [], "{head}");
            assert_eq!(size_of(head, 69), [(2, "function-size")], "{head}");
        }
        for head in [
            "if (x) {",
            "} else if (x) {",
            "export class Run {",
            "const table = {",
            "for (const a of b()) {",
        ] {
            assert_eq!(size_of(head, 100), [], "{head}");
        }
    }
}

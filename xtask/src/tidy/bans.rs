//! Reports patterns that are banned in this project, with the replacement for each.

use super::finding::TidyFinding;
use super::rust_lexer::{SourceLine, has_word, tokens};
use super::source_tree::{SourceFile, SourceTree};

struct BannedPattern {
    rule: &'static str,
    /// The replacement and the reason.
    advice: &'static str,
    matches: fn(&SourceLine) -> bool,
}

const BANS: &[BannedPattern] = &[
    BannedPattern {
        rule: "unbounded",
        advice: "use a bounded channel with a named `_MAX`: an unbounded queue can exhaust memory",
        matches: |line| has_word(&line.code, "unbounded_channel"),
    },
    BannedPattern {
        rule: "fixme",
        advice: "fix it, or open an issue and write `TODO(#12)`: known bugs are not merged",
        matches: |line| has_word(&line.comment, "FIXME"),
    },
    BannedPattern {
        rule: "todo",
        advice: "name the issue, `TODO(#12)`: comments are not a task list",
        matches: |line| has_todo_without_issue(&line.comment),
    },
    BannedPattern {
        rule: "banner",
        advice: "make it a module or delete the line: split a file that needs banners",
        matches: |line| is_banner(&line.comment),
    },
    BannedPattern {
        rule: "step-comment",
        advice: "explain why, or name a function after the step: numbers go stale when steps move",
        matches: |line| is_step(&line.comment),
    },
    BannedPattern {
        rule: "module-name",
        advice: "name it after its contents, or move each part to its owner: this name fits \
            anything",
        matches: |line| declares_banned_module(&line.code),
    },
];

const SWALLOWED: &str = "return the error or match on it: a dropped error hides a failure";

const BANNED_MODULES: &[&str] = &["common", "helpers", "prelude", "types", "utils"];

/// Other file types in the tree, which are searched only for notes such as TODO(#1).
const NOTE_EXTENSIONS: &[&str] =
    &[".css", ".proto", ".py", ".sh", ".sql", ".toml", ".ts", ".tsx", ".yml", "Makefile"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings: Vec<TidyFinding> = tree.rust_files().flat_map(check_rust).collect();
    let others = tree.files.iter();
    let others = others.filter(|file| NOTE_EXTENSIONS.iter().any(|end| file.path.ends_with(end)));
    findings.extend(others.flat_map(check_notes));
    findings
}

fn check_rust(file: &SourceFile) -> Vec<TidyFinding> {
    let lines = file.rust_lines();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for ban in BANS.iter().filter(|ban| (ban.matches)(line)) {
            findings.push(TidyFinding::new(&file.path, index + 1, ban.rule, ban.advice));
        }
    }
    for line in swallowed_results(&lines) {
        findings.push(TidyFinding::new(&file.path, line, "swallowed", SWALLOWED));
    }
    findings
}

fn check_notes(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (number, text) in file.numbered_lines() {
        let line = SourceLine { comment: text.to_owned(), ..SourceLine::default() };
        let notes = BANS.iter().filter(|ban| ["fixme", "todo"].contains(&ban.rule));
        for ban in notes.filter(|ban| (ban.matches)(&line)) {
            findings.push(TidyFinding::new(&file.path, number, ban.rule, ban.advice));
        }
    }
    findings
}

fn has_todo_without_issue(comment: &str) -> bool {
    comment.match_indices("TODO").any(|(at, word)| {
        let issue = comment[at + word.len()..].strip_prefix("(#").unwrap_or_default();
        !issue.starts_with(|c: char| c.is_ascii_digit())
    }) && has_word(comment, "TODO")
}

/// Checks for a plain comment that starts with a ruled line. Tables and diagrams in documentation
/// are allowed.
fn is_banner(comment: &str) -> bool {
    let Some(text) = comment.strip_prefix("//") else { return false };
    let ruled = |mark: char| text.trim_start().starts_with(&mark.to_string().repeat(4));
    !text.starts_with('!') && ['=', '-', '*', '#', '~', '─', '/'].into_iter().any(ruled)
}

fn is_step(comment: &str) -> bool {
    let text = comment.trim_start_matches(['/', '!', '*', ' ']);
    let number = text.strip_prefix("Step ").or_else(|| text.strip_prefix("step "));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

fn declares_banned_module(code: &str) -> bool {
    tokens(code).windows(2).any(|pair| pair[0] == "mod" && BANNED_MODULES.contains(&pair[1]))
}

/// Returns the lines of statements that consist only of `….ok();`.
fn swallowed_results(lines: &[SourceLine]) -> Vec<usize> {
    let code: Vec<&str> = lines.iter().map(|line| line.code.as_str()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices(".ok();") {
        let statement = code[statement_start(&code[..at])..at].trim_start();
        let keeps = statement.starts_with("return ") || statement.contains(" = ");
        if !keeps || statement.starts_with("let _ ") {
            found.push(code[..at].matches('\n').count() + 1);
        }
    }
    found
}

/// Returns the start of the statement in which `code` ends.
fn statement_start(code: &str) -> usize {
    let mut depth = 0_usize;
    let mut after = '.';
    for (at, character) in code.char_indices().rev() {
        match character {
            // A block that a method is called on belongs to the statement.
            '}' if depth == 0 && after != '.' => return at + 1,
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth == 0 => return at + 1,
            '(' | '[' | '{' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
        if !character.is_whitespace() {
            after = character;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_file(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let findings = check(&SourceTree::from_files(&[(path, text)]));
        findings.iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    fn check_rules(text: &str, expected: &[&str]) {
        let rules: Vec<_> =
            check_file("crates/a/src/x.rs", text).into_iter().map(|(_, rule)| rule).collect();
        assert_eq!(rules, expected, "{text}");
    }

    #[test]
    fn names_are_banned() {
        check_rules("let (tx, rx) = mpsc::unbounded_channel();", &["unbounded"]);
        check_rules("mod utils;", &["module-name"]);
        check_rules("pub(crate) mod types { }", &["module-name"]);
        check_rules("mod tests; mod commands; // mod utils", &[]);
        check_rules("f(\"mod utils\")", &[]);
    }

    #[test]
    fn comments_are_banned() {
        check_rules("x(); // FIXME later", &["fixme"]);
        check_rules("// TODO: later", &["todo"]);
        check_rules("/// TODO(ada)", &["todo"]);
        check_rules("// TODO(#12): when the writer can do it", &[]);
        check_rules("f(\"TODO\"); // TODOS is a word", &[]);
        check_rules("// ==== Reading ====", &["banner"]);
        check_rules("// ---------", &["banner"]);
        check_rules("//////////", &["banner"]);
        check_rules("//! ---- | ----", &[]);
        check_rules("// a ---- b", &[]);
        check_rules("// Step 1: open it", &["step-comment"]);
        check_rules("// Step by step", &[]);
    }

    #[test]
    fn notes_are_found_in_other_files_too() {
        assert_eq!(check_file("crates/a/src/x.sql", "a\n-- TODO index"), [(2, "todo")]);
        assert_eq!(check_file("Makefile", "# FIXME"), [(1, "fixme")]);
        assert_eq!(check_file("CONTRIBUTING.md", "no FIXME"), []);
    }

    #[test]
    fn dropped_results_are_found() {
        check_rules("fn f() { g().ok(); }", &["swallowed"]);
        check_rules("let a = 1;\nfile\n    .write(|x| { x; })\n    .ok();", &["swallowed"]);
        check_rules("if a { b }\ng().ok();", &["swallowed"]);
        check_rules("match a { _ => b }.ok();", &["swallowed"]);
        check_rules("let _ = g().ok();", &["swallowed"]);
        check_rules("let a = g().ok();", &[]);
        check_rules("return g(1, [2]).ok();", &[]);
        check_rules("self.x = match a { b => c }\n    .ok();", &[]);
        assert_eq!(check_file("crates/a/src/x.rs", "a;\n\nb\n.ok();"), [(4, "swallowed")]);
    }
}

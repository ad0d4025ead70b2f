//! Checks the wording of documents, comments, messages and pages: no habits of unidiomatic English
//! (`is told`, `anew`, `What is in the file is shown`).
//!
//! # Not here
//! - The habits, each with plain English for it → `wording/habits.rs`.
//! - Finding the prose in a file → `wording/prose.rs`.

mod habits;
mod prose;

use std::sync::LazyLock;

use regex::RegexSet;

use self::habits::{HABITS, Habit, Scope};
use self::prose::{Prose, ProseKind};
use super::finding::TidyFinding;
use super::source_tree::{SourceFile, SourceTree};

const RULE: &str = "wording";

/// Files that quote the habits: their definition, and the list of words to avoid.
const QUOTING: &[&str] = &["xtask/src/tidy/wording/habits.rs", "docs/glossary.md"];

/// Directories of texts that other people wrote.
const VENDORED: &[&str] = &["crates/sqlite3mc-sys/recover/", "vectors/"];

/// The patterns of all habits, in the order of `HABITS`: one search finds which of them match.
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = HABITS.iter().map(|habit| habit.pattern.as_str());
    RegexSet::new(patterns).expect("each pattern compiles alone")
});

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let is_ours = |file: &&SourceFile| {
        !QUOTING.contains(&file.path.as_str())
            && !VENDORED.iter().any(|folder| file.path.starts_with(folder))
    };
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(is_ours) {
        for prose in prose::find(file) {
            for index in PATTERNS.matches(&prose.text) {
                findings.extend(places(file, &prose, &HABITS[index]));
            }
        }
    }
    findings
}

/// Reports each place where the habit occurs.
fn places(file: &SourceFile, prose: &Prose, habit: &Habit) -> Vec<TidyFinding> {
    let applies = match habit.scope {
        Scope::Everywhere => true,
        Scope::Sentences => prose.kind != ProseKind::Heading,
        Scope::Summaries => prose.kind == ProseKind::Summary,
    };
    if !applies {
        return Vec::new();
    }
    let found = habit.pattern.find_iter(&prose.text).filter(|found| {
        let mut exceptions = habit.except.iter().flat_map(|except| except.find_iter(&prose.text));
        !exceptions.any(|one| one.start() <= found.start() && found.end() <= one.end())
    });
    let places = found.map(|found| {
        // Some habits begin with the end of the previous sentence.
        let skipped = found.as_str().find(char::is_alphanumeric).unwrap_or(0);
        let advice = format!("“{}”: {}", found.as_str()[skipped..].trim_end(), habit.instead);
        TidyFinding::new(&file.path, prose.line(found.start() + skipped), RULE, advice)
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_file(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&SourceTree::from_files(&[(path, text)]));
        findings.iter().map(|finding| finding.line).collect()
    }

    /// Checks a sentence of a document.
    fn is_found(sentence: &str) -> bool {
        !check_file("docs/a.md", sentence).is_empty()
    }

    #[test]
    fn good_english_is_not_reported() {
        for sentence in [
            "The two cannot be told apart.",
            "Nothing was heard of it.",
            "N stands for a number.",
            "It matters where they are there is a limit.",
            "A budget comes to life.",
            "It is so large that it fails.",
            "There is no error. It is no longer needed.",
            "What is it? Who can read it?",
            "`anew` and [text](anew.md)",
            "It is the caller's file.",
            "It needs version\n3.24 of SQLite.",
        ] {
            assert!(!is_found(sentence), "{sentence}");
        }
    }

    #[test]
    fn things_are_created() {
        assert!(is_found("Warren makes a file.") && is_found("Accounts are made."));
        assert!(!is_found("A file is made of pages."));
    }

    #[test]
    fn headings_may_be_clauses() {
        assert!(is_found("What is in a file is shown."));
        assert!(!is_found("# What is in a file"));
        assert!(!is_found("| What | Limit |\n|---|---|\n| Rows | 3 |"));
        assert!(is_found("| Part | Limit |\n|---|---|\n| What is sent. | 3 |"));
        assert!(is_found("# The file, anew"));
    }

    #[test]
    fn summaries_of_public_items_are_sentences() {
        let summary = |text: &str| check_file("crates/a/src/a.rs", text);
        assert_eq!(summary("/// The size.\nfn a() {}"), [1]);
        assert_eq!(summary("\n/// In bytes of the file.\nfn a() {}"), [2]);
        assert_eq!(summary("/// Returns the size.\n///\n/// In bytes.\nfn a() {}"), [0; 0]);
        assert_eq!(summary("// In bytes.\nfn a() {}"), [0; 0]);
        assert_eq!(check_file("web/a.ts", "/** In bytes of it. */\nconst a = 1;"), [1]);
    }

    #[test]
    fn the_prose_of_each_kind_of_file_is_checked() {
        for (path, text) in [
            ("docs/a.md", "# A\n\nIt is\nanew."),
            ("crates/a/src/a.rs", "//! A. Once\n//! this is\n\n// a\nf(\"b\"); // anew"),
            ("crates/a/src/b.rs", "\n\nf(\"made \\\n   anew\");"),
            ("crates/a/src/c.rs", "\n\nf(\"made\\nanew\");"),
            ("crates/a/src/a.sql", "\n\n\n-- anew"),
            ("web/plan/src/a.tsx", "/** Is a page. */\n\n\n<p>made anew</p>;"),
            ("web/plan/src/b.ts", "/**\n * Is a page.\n *\n * Made anew.\n */"),
            ("web/plan/src/c.css", "a {}\n\n\n/* anew */"),
            ("web/plan/src/d.css", "a {}\n\n\na { b: c } /* made\nanew */"),
            ("web/plan/src/e.ts", "/** Is a page. */\n\nf(`made ${g(1)} anew`);"),
            ("web/plan/index.html", "<html>\n\n<p>made anew</p>"),
            ("bench/a.py", "#!/bin/a\n\n\"\"\"Is a\nanew.\"\"\""),
            ("Makefile", "a:\n\n\n\tb # anew"),
            ("Makefile", "a:\n\n\nb: ## anew"),
            (".ci/a.sh", "a=\"$#\"\n\n\n# anew"),
        ] {
            let lines = check_file(path, text);
            assert_eq!(lines.len(), 1, "{path}: {lines:?}");
            assert!(lines[0] >= 3, "{path}: {lines:?}");
        }
    }

    #[test]
    fn code_and_strings_of_tests_are_not_prose() {
        for (path, text) in [
            ("docs/a.md", "# A\n```sh\nanew\n```"),
            ("crates/a/src/a.rs", "fn anew() {}"),
            ("web/a.ts", "/** Is a page. */\nf(`${anew}`);"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n f(\"anew\");\n}"),
            ("crates/a/tests/a.rs", "f(\"anew\");"),
            ("web/tests/a.test.ts", "f(\"anew\");"),
            ("docs/glossary.md", "| again | anew |"),
            ("vectors/a.md", "anew"),
        ] {
            assert_eq!(check_file(path, text), [0; 0], "{path}");
        }
        assert_eq!(check_file("crates/a/tests/a.rs", "// anew"), [1]);
        let sentences = "It is one\n// line. What follows\n// is another.";
        assert_eq!(check_file("crates/a/src/a.rs", &format!("// {sentences}")), [2]);
    }
}

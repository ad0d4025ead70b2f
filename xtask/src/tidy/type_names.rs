//! Checks type names: they are nouns, and unique in all of Rust and in all of TypeScript.
//!
//! Outlines, search, backtraces and reviews show only the bare name of a type. A name that another
//! type also has is of no use there, and neither is a participle (`Held`, `Waiting`) or an ending
//! such as `Manager`.
//!
//! # Not here
//! - The list of terms → `docs/glossary.md`.

use std::collections::BTreeMap;

use super::finding::TidyFinding;
use super::rust_lexer::tokens;
use super::source_tree::{SourceFile, SourceTree};

const RULE: &str = "type-name";

/// Names that several Rust types share, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("BenchCommand", "a build without the benchmarks has a stand-in"),
    ("Error", "one for each crate"),
    ("FlushProof", "the engine's model checks have a stand-in"),
    ("Result", "one for each crate"),
    ("Transaction", "the engine's model checks have a stand-in"),
    ("TuneArgs", "a build without the benchmarks has a stand-in"),
];

/// Participles that end in neither "ed" nor "ing".
const IRREGULAR: &[&str] = &[
    "Begun", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Lost", "Made",
    "Run", "Said", "Seen", "Sent", "Shown", "Taken", "Told", "Written",
];

/// Endings without meaning.
const BANNED_ENDINGS: &[&str] =
    &["Helper", "Impl", "Manager", "Processor", "Util", "Utils", "Wrapper"];

/// A declaration of a type.
struct DeclaredType<'t> {
    name: String,
    path: &'t str,
    line: usize,
}

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let rust: Vec<DeclaredType<'_>> = tree.rust_files().flat_map(rust_types).collect();
    let scripts = tree.files.iter().filter(|file| file.is_typescript());
    let scripts: Vec<DeclaredType<'_>> = scripts.flat_map(typescript_types).collect();
    let mut findings =
        check_unique(&rust, &|name| SHARED.iter().any(|(shared, _)| *shared == name));
    findings.extend(check_unique(&scripts, &|_| false));
    findings.extend(rust.iter().chain(&scripts).filter_map(check_words));
    findings
}

fn check_words(declared: &DeclaredType<'_>) -> Option<TidyFinding> {
    let name = &declared.name;
    let advice = if is_participle(name) {
        format!("`{name}` is not a noun: name the thing that it describes")
    } else if BANNED_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        format!("the suffix of `{name}` is meaningless: name the thing, or write a function")
    } else {
        return None;
    };
    Some(TidyFinding::new(declared.path, declared.line, RULE, advice))
}

/// Reports every type of a name except the first.
fn check_unique(types: &[DeclaredType<'_>], may_share: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    let mut first: BTreeMap<&str, &DeclaredType<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    for declared in types.iter().filter(|declared| !may_share(&declared.name)) {
        if let Some(other) = first.get(declared.name.as_str()) {
            let advice =
                format!("`{}` is also in {}: give it a unique name", declared.name, other.path);
            findings.push(TidyFinding::new(declared.path, declared.line, RULE, advice));
        } else {
            first.insert(&declared.name, declared);
        }
    }
    findings
}

fn rust_types(file: &SourceFile) -> impl Iterator<Item = DeclaredType<'_>> {
    file.rust_lines().into_iter().enumerate().filter_map(|(index, line)| {
        // An indented `type` belongs to a trait or a function.
        let is_alias_here = !line.code.starts_with(char::is_whitespace);
        let names = tokens(&line.code);
        let mut pairs = names.windows(2);
        let pair = pairs.find(|pair| match pair[0] {
            "enum" | "struct" | "trait" | "union" => true,
            "type" => is_alias_here,
            _ => false,
        })?;
        let is_name = pair[1].starts_with(char::is_uppercase);
        is_name.then(|| DeclaredType {
            name: pair[1].to_owned(),
            path: &file.path,
            line: index + 1,
        })
    })
}

fn typescript_types(file: &SourceFile) -> impl Iterator<Item = DeclaredType<'_>> {
    file.numbered_lines().filter_map(|(number, text)| {
        let mut words = text
            .split(' ')
            .skip_while(|word| ["export", "default", "declare", "abstract"].contains(word));
        let is_type = ["class", "enum", "interface", "type"].contains(&words.next()?);
        let name = words.next()?.split(|c: char| !c.is_alphanumeric()).next()?;
        let is_name = is_type && name.starts_with(char::is_uppercase);
        is_name.then(|| DeclaredType { name: name.to_owned(), path: &file.path, line: number })
    })
}

/// Returns whether a name of one word is a participle.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(|c| c.is_uppercase()).count() == 1;
    is_one_word && (IRREGULAR.contains(&name) || name.ends_with("ed") || name.ends_with("ing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_files(files: &[(&str, &str)]) -> Vec<String> {
        let findings = check(&SourceTree::from_files(files));
        findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn no_two_types_have_one_name() {
        let one = ("crates/a/src/one.rs", "/// A.\npub(crate) struct RowState<T> { x: T }");
        let two = |text| ("crates/b/src/two.rs", text);
        assert_eq!(check_files(&[one, two("\nenum RowState {}")]), ["crates/b/src/two.rs:2"]);
        assert_eq!(check_files(&[one, two("type RowState = u8;")]), ["crates/b/src/two.rs:1"]);
        let no_type = "    type RowState = u8; // struct RowState\nlet x = RowState;";
        assert!(check_files(&[one, two(no_type)]).is_empty());
        let errors = [("crates/a/src/error.rs", "enum Error {}"), two("enum Error {}")];
        assert!(check_files(&errors).is_empty());
    }

    #[test]
    fn languages_share_names_of_what_is_the_same() {
        let rust = ("crates/a/src/one.rs", "struct SyncReport;");
        let script = ("web/client/src/api.ts", "export interface SyncReport {\n}\n");
        let again = ("web/plan/src/report.tsx", "type SyncReport<T> = T;\n");
        assert!(check_files(&[rust, script]).is_empty());
        assert_eq!(check_files(&[rust, script, again]), ["web/plan/src/report.tsx:1"]);
    }

    #[test]
    fn a_type_is_a_noun() {
        let check = |name: &str| check_files(&[("crates/a/src/x.rs", &format!("struct {name};"))]);
        assert_eq!(check("Taken").len(), 1);
        assert_eq!(check("Waiting").len(), 1);
        assert_eq!(check("Settled").len(), 1);
        assert!(check("WaitingRequest").is_empty());
    }

    #[test]
    fn an_ending_says_something() {
        let check = |text: &str| check_files(&[("crates/a/src/x.rs", text)]).len();
        assert_eq!(check("pub struct SyncManager;"), 1);
        assert_eq!(check("enum StoreImpl<T> {}"), 1);
        assert_eq!(check("impl Processor for X {} // a FooManager"), 0);
        assert_eq!(check("mod tests; struct Message;"), 0);
        assert_eq!(check("f(\"struct FooManager\")"), 0);
    }
}

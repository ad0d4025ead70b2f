//! Checks that no imports form a cycle inside a crate or a package of `web/`: the files can be read
//! in an order in which each needs only earlier ones.
//!
//! A Rust file imports another if one of its paths (`use`, or a path inside code) leads to an item
//! that the other declares. Re-exports are followed to the declaration, so a module that contains
//! only `mod` lines and re-exports is in no cycle. Tests may import anything.
//!
//! # Not here
//! - Dependencies between crates → `crate_edges.rs`.
//! - Reading the files → `import_graph.rs`, `typescript_imports.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::finding::TidyFinding;
use super::import_graph::{self, FileGraph};
use super::source_tree::SourceTree;
use super::typescript_imports;

const RULE: &str = "import-cycle";

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let graphs = [import_graph::import_graphs(tree), typescript_imports::import_graphs(tree)];
    graphs.iter().flatten().flat_map(check_graph).collect()
}

/// Reports a shortest cycle, removes its first import, and searches again.
fn check_graph(graph: &FileGraph) -> Vec<TidyFinding> {
    let mut imports = graph.imports.clone();
    let mut findings = Vec::new();
    while let Some(cycle) = shortest_cycle(&imports) {
        let line = imports.get_mut(&cycle[0]).and_then(|targets| targets.remove(&cycle[1]));
        let names: Vec<&str> = cycle.iter().map(|path| graph.short_name(path)).collect();
        let advice = format!("{}: break the cycle by moving the shared code", names.join(" → "));
        findings.push(TidyFinding::new(&cycle[0], line.unwrap_or(1), RULE, advice));
    }
    findings
}

/// Returns the files of a shortest cycle; the first one is repeated at the end.
fn shortest_cycle(imports: &BTreeMap<String, BTreeMap<String, usize>>) -> Option<Vec<String>> {
    let cycles = imports.keys().filter_map(|start| path_back(imports, start));
    cycles.min_by_key(Vec::len)
}

/// Searches breadth-first for a path from a file back to itself.
fn path_back(
    imports: &BTreeMap<String, BTreeMap<String, usize>>,
    start: &str,
) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut pending = VecDeque::from([vec![start.to_owned()]]);
    while let Some(path) = pending.pop_front() {
        for target in imports.get(path.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer: Vec<String> = path.iter().chain([target]).cloned().collect();
            if target == start {
                return Some(longer);
            }
            if seen.insert(target.clone()) {
                pending.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_crate(files: &[(&str, &str)]) -> Vec<String> {
        let manifest = [("crates/a/Cargo.toml".to_owned(), "")];
        let sources = files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text));
        let files: Vec<(String, &str)> = manifest.into_iter().chain(sources).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let findings = check(&SourceTree::from_files(&files));
        findings.iter().map(ToString::to_string).collect()
    }

    const LIB: &str = "mod one; mod two; pub use two::Two;";

    #[test]
    fn two_files_that_import_each_other_are_a_cycle() {
        let two = ("two.rs", "use crate::one::One;\nstruct Two;");
        let report = check_crate(&[("lib.rs", LIB), ("one.rs", "\nuse crate::two::Two;"), two]);
        assert_eq!(
            report,
            ["crates/a/src/one.rs:2: import-cycle: one → two → one: break the cycle by moving \
                 the shared code"]
        );
        assert!(check_crate(&[("lib.rs", LIB), ("one.rs", "struct One;"), two]).is_empty());
    }

    #[test]
    fn any_path_counts_and_a_reexport_leads_to_the_declaration() {
        let two = ("two.rs", "use crate::one::*;\npub struct Two;");
        for one in [
            "use super::Two;",
            "use crate::{Two as Other};",
            "fn f(two: &crate::Two) {}",
            "fn f() { println!(\"{}\", crate::two::NAME) }",
            "mod inner { use super::super::two::Two; }",
        ] {
            let one = format!("{one} pub struct One;");
            assert_eq!(check_crate(&[("lib.rs", LIB), ("one.rs", &one), two]).len(), 1, "{one}");
        }
    }

    #[test]
    fn a_parent_that_uses_its_child_must_not_be_used_by_it() {
        let lib = ("lib.rs", "mod one;");
        let one = ("one.rs", "mod part; const MAX: u8 = 1; fn f() { part::g() }");
        assert_eq!(check_crate(&[lib, one, ("one/part.rs", "use super::MAX;")]).len(), 1);
        assert!(check_crate(&[lib, one, ("one/part.rs", "pub fn g() {}")]).is_empty());
        let facade = ("one.rs", "mod part; mod other; pub use part::Part; use other::Other;");
        let part = ("one/part.rs", "use super::other::Other; pub struct Part;");
        let other = ("one/other.rs", "pub struct Other;");
        assert!(check_crate(&[lib, facade, part, other]).is_empty());
    }

    #[test]
    fn a_reexport_imports_once_its_name_is_used() {
        let lib = ("lib.rs", "mod one;");
        let part = ("one/part.rs", "use super::MAX; pub struct Part;");
        let check = |more: &str| {
            let one = format!("mod part; pub use part::Part; const MAX: u8 = 1; {more}");
            check_crate(&[lib, ("one.rs", &one), part]).len()
        };
        assert_eq!(check(""), 0);
        assert_eq!(check("fn f(part: Part) {}"), 1);
        assert_eq!(check("fn f() { vec![Part] }"), 1);
    }

    #[test]
    fn scripts_are_in_no_cycle_either() {
        let one = ("web/a/src/one.ts", "import { two } from \"./tab/two.js\";");
        let two = ("web/a/src/tab/two.ts", "import type { One } from \"../one.js\";");
        let report = check(&SourceTree::from_files(&[one, two]));
        assert_eq!(report.len(), 1);
        assert!(report[0].to_string().contains("one → tab/two → one"), "{}", report[0]);
        assert!(check(&SourceTree::from_files(&[one, ("web/a/src/tab/two.ts", "")])).is_empty());
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let two = ("two.rs", "use crate::one::One;\npub struct Two;");
        for one in [
            "#[cfg(test)] mod tests { use crate::two::Two; }",
            "#[cfg(test)] use crate::two::Two;",
            "#[cfg(test)] mod tests;",
            "use two::Two; use std::two::Two;",
            "// use crate::two::Two;",
        ] {
            let tests = ("one/tests.rs", "use crate::two::Two;");
            let one = ("one.rs", one);
            assert!(check_crate(&[("lib.rs", LIB), one, tests, two]).is_empty(), "{}", one.1);
        }
    }
}

//! Checks that every Rust file of a package is compiled: it is a root that cargo knows, or some
//! `mod` leads to it.
//!
//! # Not here
//! - `#[path]` and a `mod x;` inside an inline module: this check would call the file dead. The one
//!   user of `#[path]`, `crates/engine/tests/model`, names files that the library declares, too.

use std::collections::BTreeSet;

use super::finding::TidyFinding;
use super::rust_lexer::tokens;
use super::source_tree::{SourceFile, SourceTree};

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut pending: Vec<&SourceFile> =
        tree.rust_files().filter(|file| is_root(tree, file)).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(file) = pending.pop() {
        if reached.insert(&file.path) {
            let base = module_folder(file, is_root(tree, file));
            for name in declared_modules(file) {
                let paths = [format!("{base}{name}.rs"), format!("{base}{name}/mod.rs")];
                pending.extend(paths.iter().filter_map(|path| tree.get(path)));
            }
        }
    }
    let in_package = |file: &&SourceFile| package_of(tree, &file.path).is_some();
    let dead =
        tree.rust_files().filter(in_package).filter(|file| !reached.contains(file.path.as_str()));
    let instead = "no `mod` declares this file: declare it or delete the file";
    dead.map(|file| TidyFinding::new(&file.path, 1, "dead-file", instead)).collect()
}

fn is_root(tree: &SourceTree, file: &SourceFile) -> bool {
    let Some(package) = package_of(tree, &file.path) else { return false };
    let parts: Vec<&str> = file.path[package.len()..].split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Returns the nearest parent directory with a `Cargo.toml`, with its final `/`.
fn package_of<'a>(tree: &SourceTree, path: &'a str) -> Option<&'a str> {
    let folders = path.rmatch_indices('/').map(|(at, _)| &path[..=at]);
    folders.into_iter().find(|folder| tree.get(&format!("{folder}Cargo.toml")).is_some())
}

/// Returns the directory of the modules that a file declares.
fn module_folder(file: &SourceFile, is_root: bool) -> String {
    let folder = file.path.rfind('/').map_or("", |at| &file.path[..=at]);
    let stem = file.path[folder.len()..].trim_end_matches(".rs");
    if is_root || stem == "mod" { folder.to_owned() } else { format!("{folder}{stem}/") }
}

fn declared_modules(file: &SourceFile) -> Vec<String> {
    let code: Vec<String> = file.rust_lines().into_iter().map(|line| line.code).collect();
    let code = code.join("\n");
    let tokens = tokens(&code);
    let declarations = tokens.windows(3).filter(|window| window[0] == "mod" && window[2] == ";");
    declarations.map(|window| window[1].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tree(files: &[(&str, &str)]) -> Vec<String> {
        let files = [&[("crates/a/Cargo.toml", "")], files].concat();
        check(&SourceTree::from_files(&files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_without_a_mod_is_dead() {
        let dead = check_tree(&[
            ("crates/a/src/lib.rs", "// mod dead;\nmod used;"),
            ("crates/a/src/used.rs", ""),
            ("crates/a/src/dead.rs", "mod below;"),
            ("crates/a/src/dead/below.rs", ""),
            ("crates/a/src/used/stray.rs", ""),
            ("crates/a/tests/it/stray.rs", ""),
        ]);
        let expected =
            ["src/dead.rs", "src/dead/below.rs", "src/used/stray.rs", "tests/it/stray.rs"];
        assert_eq!(dead, expected.map(|path| format!("crates/a/{path}")));
    }

    #[test]
    fn modules_are_followed() {
        let dead = check_tree(&[
            ("crates/a/build.rs", ""),
            ("crates/a/src/main.rs", "pub(crate) mod one;\n#[cfg(test)]\nmod two;"),
            ("crates/a/src/one.rs", "mod inner;"),
            ("crates/a/src/one/inner.rs", ""),
            ("crates/a/src/two/mod.rs", "mod inner;"),
            ("crates/a/src/two/inner.rs", ""),
            ("crates/a/tests/it/main.rs", "mod case;"),
            ("crates/a/tests/it/case.rs", ""),
            ("notes/example.rs", ""),
        ]);
        assert_eq!(dead, Vec::<String>::new());
    }
}

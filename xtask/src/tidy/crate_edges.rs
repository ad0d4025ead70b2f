//! Checks that a crate depends only on crates that it may depend on: dependencies point down only.
//!
//! A new dependency is a decision about the architecture. It is made here, in one line that a
//! reviewer sees.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::finding::TidyFinding;
use super::source_tree::SourceTree;
use crate::cargo_artifacts::cargo;
use crate::programs::output;

const RULE: &str = "edge";

/// Each crate with the crates that it may depend on, to build and to run. A row names only rows
/// above it.
const EDGES: &[(&str, &[&str])] = &[
    ("crdt", &[]),
    ("protocol", &["crdt"]),
    ("sqlite3mc-sys", &[]),
    // Only the tests of this crate link SQLite.
    ("sqlite-schema", &[]),
    ("engine", &["sqlite-schema", "sqlite3mc-sys"]),
    ("accounts", &["engine", "crdt"]),
    ("mail-protocol", &[]),
    ("doctor", &["engine", "sqlite-schema", "sqlite3mc-sys"]),
    ("sync-store", &["accounts", "engine", "crdt"]),
    ("mail-store", &["accounts", "engine"]),
    ("mail-server", &["mail-protocol", "mail-store", "accounts", "engine"]),
    ("replica", &["protocol", "crdt", "sqlite-schema", "sqlite3mc-sys"]),
    ("replica-wasm", &["replica", "protocol", "sqlite3mc-sys"]),
    ("server", &["sync-store", "accounts", "engine", "protocol", "crdt"]),
    ("web-assets", &["server"]),
    ("actual", &["server", "sync-store", "accounts", "engine", "crdt", "sqlite-schema"]),
    // This crate starts database servers, for tests and benchmarks only.
    ("postgres-lab", &[]),
    (
        "bench",
        &[
            "actual",
            "engine",
            "accounts",
            "sync-store",
            "replica",
            "protocol",
            "crdt",
            "sqlite-schema",
            "sqlite3mc-sys",
            "postgres-lab",
        ],
    ),
    (
        "cli",
        &[
            "actual",
            "bench",
            "doctor",
            "mail-server",
            "mail-store",
            "server",
            "replica",
            "sync-store",
            "accounts",
            "engine",
            "sqlite3mc-sys",
            "protocol",
            "crdt",
            "web-assets",
        ],
    ),
    // Only tests use this crate.
    ("fuzz", &["actual", "doctor", "engine", "mail-store", "replica", "protocol", "crdt"]),
    ("xtask", &[]),
];

/// Crates that the tests of a crate may use in addition to its row in `EDGES`.
const TEST_EDGES: &[(&str, &[&str])] = &[
    ("sqlite-schema", &["sqlite3mc-sys"]),
    ("sync-store", &["postgres-lab"]),
    ("cli", &["postgres-lab"]),
];

pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let metadata = output(cargo(root).args(["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_str(&metadata).context("cannot parse the output of cargo metadata")
}

pub(super) fn check(metadata: &Value, tree: &SourceTree) -> Result<Vec<TidyFinding>> {
    let root = metadata["workspace_root"].as_str().context("metadata: no workspace_root")?;
    let packages = metadata["packages"].as_array().context("metadata: no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("metadata: a package has no name")?;
        let manifest = package["manifest_path"].as_str().context("metadata: no manifest_path")?;
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        if row(EDGES, name).is_none() {
            let instead = format!("give `{name}` a row in xtask/src/tidy/crate_edges.rs");
            findings.push(TidyFinding::new(manifest, 1, RULE, instead));
            continue;
        }
        let dependencies = package["dependencies"].as_array().context("metadata: dependencies")?;
        // Only the workspace's own crates have a path.
        for dependency in dependencies.iter().filter(|dependency| dependency["path"].is_string()) {
            let to = dependency["name"].as_str().context("metadata: a dependency has no name")?;
            if !is_allowed(name, to, dependency["kind"] == "dev") {
                let instead = format!(
                    "`{name}` may not depend on `{to}`: move the shared code down, or argue for the edge"
                );
                findings.push(TidyFinding::new(
                    manifest,
                    line_of(tree, manifest, to),
                    RULE,
                    instead,
                ));
            }
        }
    }
    Ok(findings)
}

fn is_allowed(from: &str, to: &str, in_tests: bool) -> bool {
    let listed = |table| row(table, from).is_some_and(|allowed| allowed.contains(&to));
    listed(EDGES) || (in_tests && listed(TEST_EDGES))
}

fn row<'a>(table: &[(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    table.iter().find(|(from, _)| *from == name).map(|(_, allowed)| *allowed)
}

fn line_of(tree: &SourceTree, manifest: &str, dependency: &str) -> usize {
    let is_key = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let file = tree.get(manifest);
    let line = file.and_then(|file| file.numbered_lines().find(|(_, line)| is_key(line)));
    line.map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_edge(from: &str, to: &str, kind: &Value) -> Vec<String> {
        let metadata = json!({
            "workspace_root": "/w",
            "packages": [{
                "name": from,
                "manifest_path": format!("/w/crates/{from}/Cargo.toml"),
                "dependencies": [
                    { "name": "serde", "kind": null },
                    { "name": to, "kind": kind, "path": format!("/w/crates/{to}") },
                ],
            }],
        });
        let manifest = format!("crates/{from}/Cargo.toml");
        let tree = SourceTree::from_files(&[(
            &manifest,
            &format!("[dependencies]\nserde = 1\n{to}.workspace = true"),
        )]);
        let findings = check(&metadata, &tree).unwrap();
        findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        assert_eq!(check_edge("crdt", "engine", &Value::Null), ["crates/crdt/Cargo.toml:3"]);
        assert_eq!(check_edge("engine", "accounts", &json!("dev")), ["crates/engine/Cargo.toml:3"]);
        assert_eq!(check_edge("server", "cli", &json!("build")), ["crates/server/Cargo.toml:3"]);
        assert_eq!(check_edge("stranger", "crdt", &Value::Null), ["crates/stranger/Cargo.toml:1"]);
    }

    #[test]
    fn edges_in_the_table_pass() {
        assert!(check_edge("protocol", "crdt", &Value::Null).is_empty());
        assert!(check_edge("cli", "bench", &Value::Null).is_empty());
    }

    #[test]
    fn the_table_points_down_and_never_from_a_library_to_a_program() {
        for (index, (from, allowed)) in EDGES.iter().enumerate() {
            for to in *allowed {
                let position = EDGES.iter().position(|(name, _)| name == to);
                assert!(position.is_some_and(|position| position < index), "{from} → {to}");
                let to_program = ["cli", "bench", "xtask"].contains(to);
                assert!(!to_program || (*from, *to) == ("cli", "bench"), "{from} → {to}");
            }
        }
    }
}

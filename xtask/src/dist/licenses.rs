//! Collects the license texts of other people's code in the binary: Rust packages (also those of
//! the pages' WebAssembly) and the npm packages in the pages.
//!
//! # Not here
//! - Which licenses are allowed → `deny.toml`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo_artifacts::cargo;
use crate::programs::output;

/// Build dependencies that contain compiled C code.
const SOURCES_IN_BUILD_DEPENDENCIES: &[&str] = &["sqlite3mc-src"];

/// The npm workspaces whose dependencies are in the pages, and the packages in the binary itself.
const PAGES: &[&str] = &["web/plan", "web/admin", "web/client"];
const NPM_PACKAGES: &[&str] = &["@actual-app/web"];

/// The upper-case starts of the names of license files.
const FILE_NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The folder of license files according to the REUSE specification, version 3.3.
const REUSE_FOLDER: &str = "LICENSES";

/// Packages without a license file. The text is in their repositories.
const WITHOUT_TEXT: &[&str] = &[
    "@actual-app/web",
    "alloc-stdlib",
    "bitcoin_hashes",
    "hashify",
    "maud",
    "maud_macros",
    "rsqlite-vfs",
];

const INTRODUCTION: &str = "\
Warren contains the packages below, and the Rust standard library (MIT OR Apache-2.0). The list \
gives\nthe license of each. The texts of the licenses follow, each with the packages that it \
comes from.\nThe address of a package without a text is that of its repository, which has the \
text.\n";

/// The packages with their licenses, and each text with the packages that contain it.
#[derive(Default)]
struct Licenses {
    packages: BTreeSet<String>,
    texts: BTreeMap<String, BTreeSet<String>>,
}

/// Returns the texts for a binary that is compiled for this target.
pub(super) fn text(root: &Path, target: &str) -> Result<String> {
    let mut licenses = Licenses::default();
    licenses.add_program(root, "cli", target)?;
    licenses.add_program(root, "replica-wasm", "wasm32-unknown-unknown")?;
    let mut names: BTreeSet<String> = NPM_PACKAGES.iter().map(|&name| name.to_owned()).collect();
    for page in PAGES {
        names.extend(npm_dependencies(&root.join(page))?);
    }
    for name in names {
        licenses.add_npm(&root.join("web/node_modules").join(&name))?;
    }
    Ok(licenses.print())
}

impl Licenses {
    /// Adds the packages that a package of this workspace is linked with.
    fn add_program(&mut self, root: &Path, program: &str, target: &str) -> Result<()> {
        let mut metadata = cargo(root);
        metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
        let metadata: Value = serde_json::from_str(&output(metadata.arg(target))?)?;
        let packages = linked_packages(&metadata, program)?;
        let has_sqlite = packages.iter().any(|package| package["name"] == "rusqlite");
        ensure!(has_sqlite, "cargo metadata: `{program}` does not depend on rusqlite");
        for package in packages {
            let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
            let folder = Path::new(manifest).parent().context("a manifest is in a directory")?;
            self.add(package, folder)?;
        }
        Ok(())
    }

    fn add_npm(&mut self, folder: &Path) -> Result<()> {
        self.add(&package_json(folder)?, folder)
    }

    /// Adds a package, described by `name`, `version` and `license`, and its license files.
    fn add(&mut self, package: &Value, folder: &Path) -> Result<()> {
        let text = |key: &str| {
            package[key].as_str().with_context(|| format!("{}: {key}", folder.display()))
        };
        let name = format!("{} {}", text("name")?, text("version")?);
        let home = package["repository"].as_str().or(package["repository"]["url"].as_str());
        self.packages.insert(format!(
            "{name}: {} ({})",
            text("license")?,
            home.unwrap_or("no address")
        ));
        let files = license_files(folder)?;
        ensure!(
            !files.is_empty() || WITHOUT_TEXT.contains(&text("name")?),
            "{name} has no license file: if its repository has one, add it to `WITHOUT_TEXT`"
        );
        for path in files {
            let license = String::from_utf8_lossy(&fs::read(&path)?).trim().to_owned();
            self.texts.entry(license).or_default().insert(name.clone());
        }
        Ok(())
    }

    fn print(&self) -> String {
        let mut text = format!("{INTRODUCTION}\n");
        for package in &self.packages {
            text.extend([package, "\n"]);
        }
        for (license, packages) in &self.texts {
            let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
            let rule = "-".repeat(80);
            text.extend(["\n", &rule, "\n", &packages.join(", "), "\n\n", license, "\n"]);
        }
        text
    }
}

/// Returns the license files in a package, also in its subdirectories: bundled C libraries have
/// their own.
fn license_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() {
            files.extend(license_files(&path)?);
        } else if folder.ends_with(REUSE_FOLDER)
            || FILE_NAMES.iter().any(|start| name.starts_with(start))
        {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the packages from registries that are linked into a package of the workspace.
fn linked_packages<'a>(metadata: &'a Value, program: &str) -> Result<Vec<&'a Value>> {
    let array = |value: &'a Value| value.as_array().context("cargo metadata: no array");
    let id = |package: &'a Value| package["id"].as_str().context("cargo metadata: no id");
    let mut packages = HashMap::new();
    for package in array(&metadata["packages"])? {
        packages.insert(id(package)?, package);
    }
    let mut dependencies = HashMap::new();
    for node in array(&metadata["resolve"]["nodes"])? {
        dependencies.insert(id(node)?, array(&node["deps"])?);
    }
    let first = packages.iter().find(|(_, package)| package["name"] == program);
    let mut waiting = vec![*first.with_context(|| format!("no package `{program}`"))?.0];
    let mut linked = BTreeSet::new();
    while let Some(package) = waiting.pop() {
        if !linked.insert(package) {
            continue;
        }
        for dependency in dependencies.get(package).into_iter().flat_map(|found| found.iter()) {
            let to = dependency["pkg"].as_str().context("cargo metadata: no pkg")?;
            let is_linked =
                array(&dependency["dep_kinds"])?.iter().any(|kind| kind["kind"].is_null());
            let name = packages.get(to).and_then(|package| package["name"].as_str());
            if is_linked || name.is_some_and(|name| SOURCES_IN_BUILD_DEPENDENCIES.contains(&name)) {
                waiting.push(to);
            }
        }
    }
    let linked = linked.into_iter().filter_map(|id| packages.get(id).copied());
    Ok(linked.filter(|package| package["source"].is_string()).collect())
}

/// Returns the names of a package's npm dependencies outside this workspace.
fn npm_dependencies(folder: &Path) -> Result<Vec<String>> {
    let package = package_json(folder)?;
    let dependencies = package["dependencies"].as_object();
    let names = dependencies.into_iter().flat_map(|found| found.keys());
    Ok(names.filter(|name| !name.starts_with("@warren/")).cloned().collect())
}

fn package_json(folder: &Path) -> Result<Value> {
    let path = folder.join("package.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_that_only_build_or_test_are_not_linked() {
        let package =
            |name: &str, source: Option<&str>| json!({"id": name, "name": name, "source": source});
        let dependency =
            |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let node = |name: &str, deps: &[Value]| json!({"id": name, "deps": deps});
        let registry = Some("registry");
        let metadata = json!({
            "packages": [
                package("cli", None),
                package("engine", None),
                package("serde", registry),
                package("cc", registry),
                package("proptest", registry),
                package("sqlite3mc-src", registry),
            ],
            "resolve": {"nodes": [
                node("cli", &[dependency("engine", None), dependency("proptest", Some("dev"))]),
                node("engine", &[
                    dependency("serde", None),
                    dependency("cc", Some("build")),
                    dependency("sqlite3mc-src", Some("build")),
                ]),
            ]},
        });
        let linked = linked_packages(&metadata, "cli").unwrap();
        let names: Vec<&str> =
            linked.iter().filter_map(|package| package["name"].as_str()).collect();
        assert_eq!(names, ["serde", "sqlite3mc-src"]);
        assert!(linked_packages(&metadata, "server").is_err());
    }

    #[test]
    fn each_package_has_a_license_text() {
        let folder = tempfile::tempdir().unwrap();
        let package = json!({"name": "a", "version": "1.0.0", "license": "MIT"});
        let mut licenses = Licenses::default();
        let error = licenses.add(&package, folder.path()).unwrap_err().to_string();
        assert!(error.contains("`WITHOUT_TEXT`"), "{error}");
        fs::create_dir(folder.path().join("sqlite")).unwrap();
        fs::write(folder.path().join("sqlite/License.txt"), "You may.\n").unwrap();
        licenses.add(&package, folder.path()).unwrap();
        let text = licenses.print();
        assert!(text.contains("\na 1.0.0: MIT (no address)\n"), "{text}");
        assert!(text.contains("\na 1.0.0\n\nYou may.\n"), "{text}");
    }
}

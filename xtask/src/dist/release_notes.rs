//! Runs `cargo xtask release-notes TAG`: prints the part of the changelog about a version, for the
//! page of its release. It fails if the tag, the code and the changelog disagree.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::terminal::print_line;

/// The version of this workspace.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The npm packages with the same version.
const PACKAGES: &[&str] =
    &["web/client/package.json", "web/plan/package.json", "web/admin/package.json"];

const CHANGELOG: &str = "CHANGELOG.md";

pub(crate) fn run(root: &Path, tag: &str) -> Result<bool> {
    ensure!(tag == format!("v{VERSION}"), "the tag is {tag}, Cargo.toml says {VERSION}");
    for package in PACKAGES {
        let text = fs::read_to_string(root.join(package)).context(*package)?;
        check_package(package, &serde_json::from_str(&text)?)?;
    }
    let changelog = fs::read_to_string(root.join(CHANGELOG)).context(CHANGELOG)?;
    print_line(section(&changelog, VERSION)?)?;
    Ok(true)
}

/// Checks the version of an npm package, and the version of the client that it uses.
fn check_package(name: &str, package: &Value) -> Result<()> {
    let client = &package["dependencies"]["@warren/client"];
    for version in [&package["version"], client].into_iter().filter(|version| !version.is_null()) {
        ensure!(version == VERSION, "{name} says {version}, Cargo.toml says {VERSION}");
    }
    Ok(())
}

/// Returns the section of a version, which must have a date.
fn section<'a>(changelog: &'a str, version: &str) -> Result<&'a str> {
    let heading = format!("\n## [{version}] - ");
    let (_, rest) = changelog.split_once(&heading).with_context(|| {
        format!("{CHANGELOG} has no section `{}YYYY-MM-DD`", heading.trim_start())
    })?;
    let (date, rest) = rest.split_once('\n').context("the section is empty")?;
    ensure!(is_date(date), "the date of {version} in {CHANGELOG} is `{date}`, not YYYY-MM-DD");
    let end = rest.find("\n## [").unwrap_or(rest.len());
    let section = rest[..end].trim();
    ensure!(!section.is_empty(), "{CHANGELOG} lists no changes of {version}");
    Ok(section)
}

fn is_date(text: &str) -> bool {
    let is_like =
        |(c, form): (char, char)| if form == '0' { c.is_ascii_digit() } else { c == form };
    text.len() == 10 && text.chars().zip("0000-00-00".chars()).all(is_like)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: &str = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-02\n\n- New\n\n\
                           ## [0.1.0] - Unreleased\n\n- Old\n";

    #[test]
    fn the_section_of_a_version_ends_before_the_next() {
        assert_eq!(section(CHANGES, "0.2.0").unwrap(), "- New");
    }

    #[test]
    fn the_packages_have_the_version_of_the_tag() {
        let package = |version, client| {
            let dependencies = serde_json::json!({"@warren/client": client});
            serde_json::json!({"version": version, "dependencies": dependencies})
        };
        assert!(check_package("a", &package(VERSION, VERSION)).is_ok());
        assert!(check_package("a", &package("0.0.9", VERSION)).is_err());
        assert!(check_package("a", &package(VERSION, "0.0.9")).is_err());
        assert!(run(Path::new("."), "v0.0.9").is_err());
    }

    #[test]
    fn a_version_needs_a_section_with_a_date() {
        let error = section(CHANGES, "0.1.0").unwrap_err().to_string();
        assert!(error.contains("`Unreleased`"), "{error}");
        assert!(
            section("\n## [0.1.0] - 2027-01-02\n\n## [0.0.9] - 2026-01-02\n- A", "0.1.0").is_err()
        );
        let error = section(CHANGES, "0.3.0").unwrap_err().to_string();
        assert!(error.contains("no section `## [0.3.0] - YYYY-MM-DD`"), "{error}");
    }
}

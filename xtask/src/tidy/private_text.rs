//! Checks that no file names one developer's machine or contains a secret.
//!
//! The search texts are written in two halves, so that this file needs no exception.

use super::finding::TidyFinding;
use super::source_tree::SourceTree;

/// Directories that exist on one machine only, if an absolute path starts with them.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// The starts of keys and tokens.
const SECRETS: &[&str] = &[
    concat!("PRIVATE ", "KEY-----"),
    concat!("gh", "p_"),
    concat!("github_", "pat_"),
    concat!("AK", "IA"),
    concat!("xox", "b-"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.numbered_lines() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_folder(line, folder)) {
                let instead = format!("`{folder}` exists only on one machine: use a relative path");
                findings.push(TidyFinding::new(&file.path, number, "machine-path", instead));
            }
            if let Some(secret) = SECRETS.iter().find(|secret| has_secret(line, secret)) {
                let instead = format!("`{secret}…` looks like a secret: revoke and remove it");
                findings.push(TidyFinding::new(&file.path, number, "secret", instead));
            }
        }
    }
    findings
}

/// Returns whether a path starts with the directory. In `crates/NAME/` and `https://a.org/x/` it
/// would be part of a longer path.
fn has_folder(line: &str, folder: &str) -> bool {
    let in_path = |c: char| c.is_alphanumeric() || "_-.~$*)]}".contains(c);
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(in_path))
}

fn has_secret(line: &str, secret: &str) -> bool {
    line.match_indices(secret).any(|(at, _)| {
        let starts_word = !line[..at].ends_with(char::is_alphanumeric);
        let goes_on = line[at + secret.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        starts_word && (goes_on || secret.ends_with("-----"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(line: &str) -> Vec<&'static str> {
        let tree = SourceTree::from_files(&[("a.toml", line)]);
        check(&tree).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn machine_paths_are_found() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(check_line(&format!("path = \"{folder}x\"")), ["machine-path"]);
            assert_eq!(check_line(&format!("file://{folder}x")), ["machine-path"]);
            assert!(check_line(&format!("crates{folder}x")).is_empty(), "{folder}");
            assert!(check_line(&format!("https://example.org{folder}x")).is_empty(), "{folder}");
            assert!(check_line(&format!("${{HOME}}{folder}x")).is_empty(), "{folder}");
        }
    }

    #[test]
    fn secrets_are_found() {
        for secret in SECRETS {
            assert_eq!(check_line(&format!("token = \"{secret}1234\"")), ["secret"]);
        }
        assert!(check_line("a private key").is_empty());
    }
}

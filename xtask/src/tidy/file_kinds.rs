//! Checks that committed files are small, and text: clones stay fast, and changes can be reviewed.
//!
//! # Not here
//! - Lines of a source file → `sizes.rs`, `typescript.rs`.

use super::finding::TidyFinding;
use super::source_tree::SourceTree;

/// The size limit of a file. The largest one contains recorded cases and has 200,074 bytes.
const BYTES_MAX: usize = 200 << 10;

/// Directories that may contain binary files: pictures of the documentation, recorded inputs, icons
/// of the app.
const BINARY_FOLDERS: &[&str] = &["docs/screens/", "vectors/", "web/plan/public/"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.bytes_count > BYTES_MAX {
            let advice = format!(
                "{} bytes, the maximum is {BYTES_MAX}: split it, or generate it in a build or a \
                 test",
                file.bytes_count
            );
            findings.push(TidyFinding::new(&file.path, 1, "large-file", advice));
        }
        if file.is_binary && !BINARY_FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
            let advice = format!("a binary file belongs in one of {}", BINARY_FOLDERS.join(", "));
            findings.push(TidyFinding::new(&file.path, 1, "binary-file", advice));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let findings = check(&SourceTree::from_files(&[(path, text)]));
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn large_files_are_found() {
        assert_eq!(rules("vectors/a.json", &"é".repeat(BYTES_MAX / 2)), [""; 0]);
        assert_eq!(rules("vectors/a.json", &"a".repeat(BYTES_MAX + 1)), ["large-file"]);
    }

    #[test]
    fn binary_files_are_found() {
        assert_eq!(rules("crates/a/src/a.bin", "a\0b"), ["binary-file"]);
        assert_eq!(rules("vectors/a.bin", "a\0b"), [""; 0]);
        assert_eq!(rules("crates/a/src/a.rs", "// é"), [""; 0]);
    }
}

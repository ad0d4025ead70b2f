//! Loads the files that git tracks or would add into memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::rust_lexer::{self, SourceLine};
use crate::programs::output;

#[derive(Debug)]
pub(super) struct SourceFile {
    /// The path relative to the repository's root, with `/`.
    pub(super) path: String,
    /// The contents. Bytes that are not UTF-8 are replaced: text inside binary fixtures is checked,
    /// too.
    pub(super) text: String,
    pub(super) bytes_count: usize,
    /// Whether the file is not UTF-8, or contains a NUL.
    pub(super) is_binary: bool,
}

#[derive(Debug)]
pub(super) struct SourceTree {
    pub(super) files: Vec<SourceFile>,
}

impl SourceFile {
    fn new(path: &str, bytes: &[u8]) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            text: String::from_utf8_lossy(bytes).into_owned(),
            bytes_count: bytes.len(),
            is_binary: bytes.contains(&0) || str::from_utf8(bytes).is_err(),
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    pub(super) fn is_markdown(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "md")
    }

    pub(super) fn is_typescript(&self) -> bool {
        let extension = Path::new(&self.path).extension();
        extension.is_some_and(|extension| extension == "ts" || extension == "tsx")
    }

    pub(super) fn rust_lines(&self) -> Vec<SourceLine> {
        rust_lexer::lines(&self.text)
    }

    /// Returns the lines, numbered from 1 as in an editor.
    pub(super) fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

impl SourceTree {
    /// Loads all files, including those that are not added yet, so that a mistake is found before
    /// the commit.
    pub(super) fn load(root: &Path) -> Result<SourceTree> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
        let names = output(git.current_dir(root))?;
        let mut files = Vec::new();
        // A deleted file stays in git's index until the commit.
        for path in names.split_terminator('\0').filter(|path| root.join(path).is_file()) {
            let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            files.push(SourceFile::new(path, &bytes));
        }
        Ok(SourceTree { files })
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns whether a file or a directory of that name exists; the empty path is the root.
    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty()
            || self.files.iter().any(|file| {
                let rest = file.path.strip_prefix(path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }

    #[cfg(test)]
    pub(super) fn from_files(files: &[(&str, &str)]) -> SourceTree {
        let files = files.iter().map(|(path, text)| SourceFile::new(path, text.as_bytes()));
        SourceTree { files: files.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_knows_files_and_directories_but_no_half_names() {
        let tree = SourceTree::from_files(&[("docs/formats/a.md", "")]);
        for path in ["", "docs", "docs/formats", "docs/formats/a.md"] {
            assert!(tree.has(path), "{path}");
        }
        for path in ["doc", "docs/formats/a", "docs/formats/a.md/b"] {
            assert!(!tree.has(path), "{path}");
        }
    }
}

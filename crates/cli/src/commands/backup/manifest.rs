//! Reads and writes the list of a backup's files (docs/reference/formats/18-backup.md).

use std::fs::{self, File};
use std::path::{Component, Path};

use crate::output::CommandError;
use anyhow::{Context, ensure};
use engine::sync_directory;
use protocol::ErrorCode;
use serde::{Deserialize, Serialize};

pub(super) const NAME: &str = "manifest.json";
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
pub(super) struct BackupManifest {
    /// The version of this format.
    version: u32,
    /// The time at which the last file was copied, in milliseconds since 1970.
    pub(super) created_ms: u64,
    pub(super) files: Vec<BackedUpFile>,
}

/// The field that every version of the format has.
#[derive(Deserialize)]
struct ManifestVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BackedUpFile {
    /// The path in the data directory, with slashes.
    pub(super) path: String,
    pub(super) file_bytes: u64,
    /// The hash of the whole file, 64 hex digits.
    pub(super) blake3: String,
    /// The number of pages that came from the WAL.
    pub(super) wal_pages_count: u64,
}

impl BackupManifest {
    pub(super) fn new(created_ms: u64, files: Vec<BackedUpFile>) -> Self {
        Self { version: VERSION, created_ms, files }
    }

    /// Writes the manifest, last of all files: a directory without a manifest is not a backup.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(NAME);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        File::open(&path)?.sync_all()?;
        Ok(sync_directory(folder)?)
    }

    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("not a complete backup: cannot read {}", path.display()))?;
        let invalid = |error| corrupt(format!("{}: {error}", path.display()));
        let ManifestVersion { version } = serde_json::from_str(&text).map_err(invalid)?;
        ensure!(version == VERSION, unknown_version(&path, version));
        let manifest: Self = serde_json::from_str(&text).map_err(invalid)?;
        let is_inside = |file: &BackedUpFile| {
            Path::new(&file.path).components().all(|part| matches!(part, Component::Normal(_)))
        };
        let names_others = || corrupt(format!("{} lists files outside the backup", path.display()));
        ensure!(manifest.files.iter().all(is_inside), names_others());
        Ok(manifest)
    }
}

impl BackedUpFile {
    /// Returns an error if the file differs from the manifest.
    pub(super) fn check(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(&self.path);
        let (bytes, hash) = hash_of(&path)?;
        ensure!(
            bytes == self.file_bytes && hash == self.blake3,
            corrupt(format!("{} is damaged: it does not match the manifest", path.display()))
        );
        Ok(())
    }
}

/// Returns the error for a backup that is damaged or not complete.
pub(super) fn corrupt(message: String) -> CommandError {
    CommandError::new(ErrorCode::CorruptBackup, message)
}

fn unknown_version(path: &Path, version: u32) -> CommandError {
    let code = if version > VERSION { ErrorCode::FormatTooNew } else { ErrorCode::FormatTooOld };
    let message = format!(
        "{} has format version {version}; this version of Warren reads only version {VERSION}",
        path.display()
    );
    CommandError::new(code, message)
}

/// Returns the length and the hash of a file.
pub(super) fn hash_of(path: &Path) -> anyhow::Result<(u64, String)> {
    let context = || path.display().to_string();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).with_context(context)?).with_context(context)?;
    Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        BackupManifest::new(7, Vec::new()).write(folder.path()).unwrap();
        assert_eq!(BackupManifest::read(folder.path()).unwrap().created_ms, 7);
        for (version, rest) in [(1, r#""made_ms": 7, "files": []"#), (3, r#""parts": {}"#)] {
            let text = format!(r#"{{"version": {version}, {rest}}}"#);
            fs::write(folder.path().join(NAME), text).unwrap();
            let refused = BackupManifest::read(folder.path()).err().unwrap().to_string();
            let expected = format!(
                "has format version {version}; this version of Warren reads only version 2"
            );
            assert!(refused.ends_with(&expected), "{refused}");
        }
    }
}

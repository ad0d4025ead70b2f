//! Records the commit that is built, because a figure without it cannot be reproduced. A build
//! without a repository, as in a container, can name it in `WARREN_COMMIT`.

use std::path::Path;
use std::process::Command;

const COMMIT: &str = "WARREN_COMMIT";

#[expect(clippy::disallowed_methods, reason = "a build script reads the variables of the build")]
fn main() {
    let named = std::env::var(COMMIT).ok().filter(|commit| !commit.is_empty());
    let described = named.or_else(|| git(&["describe", "--always", "--dirty"]));
    println!("cargo:rustc-env={COMMIT}={}", described.as_deref().unwrap_or("unknown"));
    println!("cargo:rerun-if-env-changed={COMMIT}");
    println!("cargo:rerun-if-changed=build.rs");
    // These files change with each commit; the index would change with every `git status`.
    for name in ["HEAD", "logs/HEAD"] {
        let file = git(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        if let Some(file) = file.filter(|file| Path::new(file).exists()) {
            println!("cargo:rerun-if-changed={file}");
        }
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}

//! Records the commit that is built, because a figure without it cannot be reproduced.

use std::path::Path;
use std::process::Command;

fn main() {
    let described = git(&["describe", "--always", "--dirty"]);
    println!("cargo:rustc-env=WARREN_COMMIT={}", described.as_deref().unwrap_or("unknown"));
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

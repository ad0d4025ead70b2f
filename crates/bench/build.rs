//! Notes the commit that is built: a figure without it cannot be repeated.

use std::process::Command;

fn main() {
    let described = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit = described.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo:rustc-env=WARREN_COMMIT={}", commit.as_deref().unwrap_or("unknown").trim());
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/index");
}

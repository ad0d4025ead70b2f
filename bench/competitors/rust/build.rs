//! Passes the version of the compiler that builds the library to its code.

use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "cargo passes values to build scripts in variables")]
fn main() {
    let compiler = std::env::var("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output().expect("the compiler starts");
    let version = String::from_utf8(output.stdout).expect("a version is text");
    println!("cargo::rustc-env=COMPETITOR_RUNTIME={}", version.trim());
    println!("cargo::rerun-if-changed=build.rs");
}

//! Runs the commands of the README and of the guides from their text: those of a page in their
//! order, in a folder with a server's data, as a reader would type them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::processes::{ServeProcess, with_input};

/// Where the pages say that the server is.
const ADDRESS: &str = "http://127.0.0.1:4600";

/// What readers have done before they read a page that begins with a file that is not tracked.
const WITH_A_FILE: &str = "warren account add ada
sqlite3 a.db \"CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note (text) VALUES ('Buy milk')\"
";

/// What they have done in addition before a page about a file that syncs.
const WITH_A_TRACKED_FILE: &str = "warren track a.db --all
warren sync a.db --server http://127.0.0.1:4600 --login ada
";

/// The lines of all blocks of shell code, except those that build Warren and start it.
fn commands_of(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines);
    let is_typed_before =
        |line: &&str| line.starts_with("make ") || line.starts_with("export PATH");
    lines.filter(|line| !is_typed_before(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The commands with the test's server, with passwords in files instead of at a prompt, and with
/// Ctrl-C for those that run until then.
fn adapt(commands: &str, address: &str) -> String {
    let adapt_line = |line: &str| {
        let command = line.split("  #").next().unwrap().trim_end();
        let asks = |words: &[&str]| words.iter().any(|words| command.contains(words));
        let mut adapted = command.to_owned();
        if asks(&["account add", "account password", "--login", "--with-vault"]) {
            adapted += " --password-file password.txt";
        }
        if asks(&["account password"]) {
            adapted += " --new-password-file password.txt";
        }
        if command.ends_with("--watch") { interrupted(&adapted) } else { adapted + "\n" }
    };
    commands.replace(ADDRESS, address).lines().map(adapt_line).collect()
}

/// A command that is interrupted when it has printed a line. Without job control (`set -m`), bash
/// starts commands in the background with SIGINT ignored.
fn interrupted(command: &str) -> String {
    format!(
        "(set -m; {command} > printed.txt &\n\
         until test -s printed.txt; do sleep 0.1; done; kill -INT %1; wait %1)\n"
    )
}

/// The lines that the commands print according to their comments.
fn printed(commands: &str) -> impl Iterator<Item = &str> {
    commands.lines().filter_map(|line| line.split_once("# prints: ").map(|(_, text)| text))
}

#[track_caller]
fn try_page(before: &str, page: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("password.txt"), "a pass-phrase of ada's own\n").unwrap();
    let data = folder.path().join("data");
    let server = ServeProcess::start(data.to_str().unwrap(), &[]);
    let commands = commands_of(page);
    assert!(commands.lines().count() >= 2, "{commands}");
    let script = adapt(&format!("{before}{commands}"), &server.address);
    let binary = Path::new(env!("CARGO_BIN_EXE_warren")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env!("PATH"));
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-xeuo", "pipefail"]);
    shell.current_dir(&folder).env("PATH", path);
    let ran = with_input(&mut shell, &script).succeeded();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    for text in printed(&commands) {
        assert!(lines.contains(&text), "no {text:?} in:\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_readme_ends_with_a_row_on_a_second_device() {
    let page = include_str!("../../../../README.md");
    assert!(printed(&commands_of(page)).count() > 0);
    try_page("", page);
}

#[test]
fn getting_started_does_what_it_says() {
    try_page("", include_str!("../../../../docs/guide/getting-started.md"));
}

#[test]
fn the_guide_to_sync_does_what_it_says() {
    try_page(WITH_A_FILE, include_str!("../../../../docs/guide/sync.md"));
}

#[test]
fn the_guide_to_encryption_does_what_it_says() {
    try_page(WITH_A_FILE, include_str!("../../../../docs/guide/end-to-end-encryption.md"));
}

#[test]
fn the_guide_to_conflicts_does_what_it_says() {
    let before = format!("{WITH_A_FILE}{WITH_A_TRACKED_FILE}");
    try_page(&before, include_str!("../../../../docs/guide/conflicts-and-history.md"));
}

#[test]
fn the_page_about_accounts_does_what_it_says() {
    try_page("", include_str!("../../../../docs/operating/accounts.md"));
}

//! The README and the guides, tried: the commands of a page run in their order, in a folder with a
//! server's data, as a reader would type them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::processes::{ServeProcess, with_input};

/// Where the pages say that the server is.
const ADDRESS: &str = "http://127.0.0.1:4600";

/// What has happened before somebody reads a page that begins with a file that is not tracked yet.
const WITH_A_FILE: &str = "warren account add ada
sqlite3 a.db \"CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note (text) VALUES ('Buy milk')\"
";

/// The same, of a page about a file that syncs.
const WITH_A_TRACKED_FILE: &str = "warren track a.db --all
warren sync a.db --server http://127.0.0.1:4600 --login ada
";

/// Everything in the blocks of code that are shell, but for what builds Warren and starts it.
fn commands_of(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines);
    let is_typed_before =
        |line: &&str| line.starts_with("make ") || line.starts_with("export PATH");
    lines.filter(|line| !is_typed_before(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The commands with the test's server, and with passwords in files instead of at a prompt.
fn adapted(commands: &str, address: &str) -> String {
    let with_password = |line: &str| {
        let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
        let command = command.trim_end();
        let asks = ["account add", "account password", "--login", "--with-vault"];
        let password = if asks.iter().any(|words| command.contains(words)) {
            " --password-file password.txt"
        } else {
            ""
        };
        let new_password = if command.contains("account password") {
            " --new-password-file password.txt"
        } else {
            ""
        };
        // A command that runs until Ctrl-C gets it.
        let limit =
            if command.ends_with("--watch") { "timeout --preserve-status -s INT 3 " } else { "" };
        format!("{limit}{command}{password}{new_password}  #{comment}\n")
    };
    commands.replace(ADDRESS, address).lines().map(with_password).collect()
}

/// What the comments of the commands say is printed.
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
    let script = adapted(&format!("{before}{commands}"), &server.address);
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

//! Tests of the pages of `docs/operating`: their code blocks are run here, with other ports, paths
//! and certificates.

mod container;
mod fail2ban;
mod postfix;
mod proxies;
mod reverse_proxy;
mod systemd;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixture::SyncFixture;
use crate::processes::{ServeProcess, start_with};

const ACCESS_PAGE: &str = include_str!("../../../../docs/operating/access.md");
const PROXIES_PAGE: &str = include_str!("../../../../docs/operating/proxies.md");

/// Returns the code block that contains this line, or else the first one after it.
#[track_caller]
fn code_block<'a>(page: &'a str, line: &str) -> &'a str {
    // Every second piece is code, after the name of its language.
    let pieces = page.split("```").enumerate();
    let mut pieces = pieces.skip_while(|(_, piece)| piece.lines().all(|other| other != line));
    let code = pieces.find_map(|(number, piece)| (number % 2 == 1).then(|| piece.split_once('\n')));
    code.flatten().unwrap_or_else(|| panic!("the page has no code at {line:?}")).1
}

/// Returns a page's text with other ports, paths or certificates; it must contain each replaced
/// text.
#[track_caller]
fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the page has no {from:?}:\n{text}");
        text.replace(from, to)
    })
}

/// Returns a command for one of the distribution's programs.
#[track_caller]
fn program(path: &str) -> Command {
    assert!(Path::new(path).is_file(), "no {path}: `make test` installs it");
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

/// Returns the page's command that starts a server behind a proxy, without `warren`.
fn command_of_page() -> Vec<&'static str> {
    let command = code_block(PROXIES_PAGE, "# A proxy in front, and a service of systemd");
    let words = command.strip_prefix("warren ").unwrap_or_else(|| panic!("{command:?}"));
    words.split_whitespace().collect()
}

/// Starts a server with the page's command, on a port of its own and with a log file.
fn serve_as_page(place: &SyncFixture, options: &[&str]) -> ServeProcess {
    let command = replaced(&command_of_page().join(" "), &[("127.0.0.1:4600", "127.0.0.1:0")]);
    let mut arguments: Vec<&str> = command.split(' ').collect();
    arguments.extend(["--data", &place.data]);
    arguments.extend(options);
    let log = File::create(place.at("server.log")).unwrap();
    ServeProcess::for_people(start_with(&[], log.into(), &arguments))
}

/// Returns the server's log.
fn log_of_server(place: &SyncFixture) -> String {
    fs::read_to_string(place.at("server.log")).unwrap()
}

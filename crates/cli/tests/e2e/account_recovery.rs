//! Tests account recovery phrases: they replace a lost password, and are offered when an account gets
//! mail.

use std::fs;
use std::process::Command;

use crate::fixture::SyncFixture;
use crate::mail::MailFixture;
use crate::mail_delivery::with_address;
use crate::processes::{CommandOutput, WARREN, python, warren, with_input};

/// Runs a command in a terminal, and answers its questions.
const TERMINAL: &str = "
import os, pty, sys
answers, command = sys.argv[1:3], sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown = b''
for question, answer in zip((b'Password for ada: ', b'[Y/n]'), answers):
    while question not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, answer.encode() + b'\\n')
try:
    while text := os.read(terminal, 1024):
        shown += text
except OSError: # Linux reports the end of a terminal like this.
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// Returns what `warren mail address add` shows a person who gives these answers.
fn add_address_in_terminal(place: &SyncFixture, password: &str, answer: &str) -> String {
    let mut command = Command::new(python());
    command.args(["-c", TERMINAL, password, answer, WARREN]);
    command.args(["mail", "address", "add", "ada@example.org", "--login", "ada"]);
    let ran = with_input(command.args(["--data", &place.data]), "");
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    ran.stdout
}

fn set_password(place: &SyncFixture, phrase: &str, new: &str) -> CommandOutput {
    let files = ["--recovery-phrase-file", phrase, "--new-password-file", new, "--json"];
    warren(&[&["account", "password", "ada", "--data", &place.data][..], &files].concat())
}

#[test]
fn a_recovery_phrase_replaces_a_lost_password_and_the_mail_is_there() {
    let mail = with_address();
    let mbox = mail.mbox("a.mbox", 3);
    mail.run(&["import", "mbox", &mbox]);
    let place = &mail.0;
    let create = ["account", "recovery-phrase", "ada"];
    let created = place.operator(&create);
    let words = created["recovery_phrase"].as_str().unwrap();
    assert_eq!(words.split(' ').count(), 24);
    // As people type it.
    let phrase = place.write("phrase.txt", &words.to_uppercase().replace(' ', "\n"));
    let new = place.write("new", "the new password");
    set_password(place, &phrase, &new).succeeded();
    let list = ["mail", "list", "--login", "ada", "--data", &place.data, "--json"];
    warren(&[&list[..], &["--password-file", &place.password]].concat()).refused("wrong_password");
    let listed = warren(&[&list[..], &["--password-file", &new]].concat()).succeeded().value();
    assert_eq!(listed.as_array().unwrap().len(), 3);

    // A second phrase replaces the first one, so it needs a confirmation.
    let with_new = |more: &[&str]| {
        let options = ["--data", &place.data, "--password-file", &new, "--json"];
        warren(&[&create[..], &options, more].concat())
    };
    with_new(&[]).refused("confirmation_required");
    set_password(place, &phrase, &new).succeeded();
    with_new(&["--yes"]).succeeded();
    set_password(place, &phrase, &new).refused("wrong_password");
    fs::write(&phrase, words.rsplit_once(' ').unwrap().0).unwrap();
    set_password(place, &phrase, &new).refused("invalid_recovery_phrase");
}

#[test]
fn a_person_who_sets_up_mail_is_offered_a_recovery_phrase() {
    let place = SyncFixture::new();
    let password = fs::read_to_string(&place.password).unwrap();
    let shown = add_address_in_terminal(&place, password.trim(), "");
    assert!(shown.contains("ACCOUNT RECOVERY PHRASE"), "{shown}");
    let rows = shown.lines().filter(|line| line.trim_start().starts_with(char::is_numeric));
    let words: Vec<&str> = rows.flat_map(|row| row.split_whitespace().skip(1)).collect();
    assert_eq!(words.len(), 24, "{shown}");
    let phrase = place.write("phrase.txt", &words.join(" "));
    let new = place.write("new", "the new password");
    set_password(&place, &phrase, &new).succeeded();
}

#[test]
fn a_person_may_decline_and_a_script_is_not_asked() {
    const HINT: &str = "run `warren account recovery-phrase ada`";
    let place = SyncFixture::new();
    let password = fs::read_to_string(&place.password).unwrap();
    let shown = add_address_in_terminal(&place, password.trim(), "n");
    assert!(!shown.contains("RECOVERY PHRASE") && shown.contains(HINT), "{shown}");

    let mail = MailFixture(SyncFixture::new());
    let add = |address| {
        let files = ["--data", &mail.0.data, "--password-file", &mail.0.password];
        let command = ["mail", "address", "add", address, "--login", "ada"];
        warren(&[&command[..], &files].concat()).succeeded().stdout
    };
    assert!(add("ada@example.org").contains(HINT));
    assert!(!add("info@example.org").contains(HINT), "only when mail is set up");
}

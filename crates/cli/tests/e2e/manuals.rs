//! Tests of `warren completions`, `warren man` and the reference of all commands.

use std::fs;
use std::process::Command;

use crate::commands::commands;
use crate::fixture::SyncFixture;
use crate::processes::{CommandOutput, json, warren, with_input};

/// Returns bash's completions for the last of these words.
fn completed(script: &str, words: &[&str]) -> Vec<String> {
    let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
    let ask = format!(
        "COMP_WORDS=('{words}')\nCOMP_CWORD={position}\n_warren warren '{last}' '{before}'\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words = words.join("' '"),
        position = words.len() - 1,
    );
    let mut bash = Command::new("bash");
    let input = format!("{script}\n{ask}");
    let ran = with_input(bash.args(["--norc", "--noprofile", "-s"]), &input).succeeded();
    assert_eq!(ran.stderr, "");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let script = warren(&["completions", "bash"]).succeeded().stdout;
    assert_eq!(completed(&script, &["warren", "ser"]), ["serve"]);
    assert_eq!(completed(&script, &["warren", "serve", "--lis"]), ["--listen"]);
    assert_eq!(completed(&script, &["warren", "serve", "--conf"]), ["--config"]);
    assert_eq!(completed(&script, &["warren", "account", "a"]), ["add"]);
    assert_eq!(completed(&script, &["warren", "completions", "z"]), ["zsh"]);
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let value = json(&["completions", shell]);
        let script = value["script"].as_str().unwrap();
        assert!(script.contains("account") && script.contains("listen"), "{shell}: {script}");
        assert_eq!(script.trim_end(), warren(&["completions", shell]).stdout.trim_end());
    }
    assert_eq!(warren(&["completions", "command.com"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page_that_groff_has_nothing_to_say_about() {
    let place = SyncFixture::new();
    let folder = place.at("share/man1");
    let written = json(&["man", &folder]);
    let pages: Vec<&str> =
        written["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), pages.len());
    for command in commands(&[]) {
        let name = format!("warren-{}.1", command.join("-"));
        assert!(pages.contains(&name.as_str()), "{name} in {pages:?}");
    }
    for name in &pages {
        let path = format!("{folder}/{name}");
        let page = fs::read_to_string(&path).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(page.contains(&format!(".SH {section}\n")), "{section} in {name}:\n{page}");
        }
        let set = Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8", &path]).output();
        let set = CommandOutput::new(set.unwrap()).succeeded();
        assert_eq!((set.stdout.as_str(), set.stderr.as_str()), ("", ""), "{name}");
    }
    let serve = fs::read_to_string(format!("{folder}/warren-serve.1")).unwrap();
    assert!(serve.contains("WARREN_LISTEN"), "{serve}");
    assert!(!pages.iter().any(|page| page.contains("settings")), "{pages:?}");
    let own = fs::read_to_string(format!("{folder}/warren.1")).unwrap();
    assert_eq!(warren(&["man"]).succeeded().stdout.trim_end(), own.trim_end());
}

#[test]
fn the_reference_in_the_documents_has_every_command_as_it_is() {
    let document = include_str!("../../../../docs/reference/commands.md");
    let made = warren(&["command-reference"]).succeeded().stdout;
    assert!(document == made, "`cargo xtask docs` updates docs/reference/commands.md");
    for command in commands(&[]) {
        let heading = format!("# warren {}\n", command.join(" "));
        assert!(document.contains(&heading), "{heading}");
    }
}

//! Tests that the commands in README and the guides exist, with these options.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::commands::commands;
use crate::processes::warren;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns README and everything below `docs`, except the formats, whose labels begin like
/// commands.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((!path.ends_with("formats")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents
}

/// Returns the words of each command that is a line, or code in one: `warren sync a.db --watch`.
fn typed(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let code = text.lines().flat_map(|line| line.split(['`', ';', '|', '#']));
    let typed = code.filter_map(|code| code.trim_start().strip_prefix("warren "));
    typed.map(|rest| rest.split_whitespace().collect())
}

/// Returns the options that `-h` of a command lists.
fn options(command: &[String]) -> Vec<String> {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("-h");
    let help = warren(&arguments).succeeded().stdout;
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn what_the_documents_say_to_type_is_understood() {
    let mut known: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for command in commands(&[]) {
        let found = options(&command);
        // A bare `warren account` refers to all its subcommands.
        for length in 1..=command.len() {
            known.entry(command[..length].to_vec()).or_default().extend(found.clone());
        }
    }
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in documents() {
        for words in typed(&fs::read_to_string(&path).unwrap()) {
            let owned: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let command = (1..=owned.len().min(3)).rev().find_map(|length| {
                known.get_key_value(&owned[..length]).map(|(_, options)| options)
            });
            let Some(options) = command else {
                wrong.push(format!("{}: warren {}", path.display(), words.join(" ")));
                continue;
            };
            checked += 1;
            let given = words.iter().filter(|word| word.starts_with("--") && **word != "--");
            let names = given.map(|word| word.split(['=', ',', ')', '.']).next().unwrap());
            for name in names.filter(|name| !options.iter().any(|option| option == name)) {
                wrong.push(format!("{}: {name} of warren {}", path.display(), words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 100, "{checked} commands were found");
}

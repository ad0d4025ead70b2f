//! Runs the commands of documents as a reader would type them, in a folder of their own.
//!
//! The language of a block of code says what is done with it:
//! - `sh`: each line is run. A comment `# prints: TEXT` is a line that the commands must print.
//! - `console`: lines after `$` are run, and what they print is compared with the lines below.
//! - any other language with the name of a file: the block is the content of that file.
//! - any other language: the block is not run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::code_block::CodeBlock;
use super::transcript;

/// Where tests may measure disks: files in /tmp may be in memory.
const DISK: &str = "/var/tmp";

/// Folders of a reader's machine that are subfolders here. Commands are run in the first one.
const FOLDERS: [&str; 4] = ["/srv/", "/mnt/", "/var/lib/node_exporter/", "/path/to/"];

/// A folder in which commands of documents are run.
pub(crate) struct Walkthrough {
    folder: TempDir,
    /// Words of the documents, each with the one to use here.
    replacements: Vec<(String, String)>,
    /// Parts of transcripts that depend on measurements: from the first text to the second one.
    unstable: Vec<(&'static str, &'static str)>,
}

impl Walkthrough {
    /// Creates an empty folder with the password of all accounts in `password.txt`.
    pub(crate) fn new(password: &str) -> Self {
        let folder = tempfile::tempdir_in(DISK).unwrap();
        let root = folder.path().to_str().unwrap();
        let here = |name: &&str| ((*name).to_owned(), format!("{root}{name}"));
        let replacements: Vec<_> = FOLDERS.iter().map(here).collect();
        for (_, path) in &replacements {
            fs::create_dir_all(path).unwrap();
        }
        let place = Self { folder, replacements, unstable: Vec::new() };
        fs::write(place.at("password.txt"), format!("{password}\n")).unwrap();
        place
    }

    /// Replaces a word of the document, such as a path or an address, by the one to use here.
    pub(crate) fn replace(mut self, document: &str, here: &str) -> Self {
        self.replacements.push((document.to_owned(), here.to_owned()));
        self
    }

    /// Excludes the part of transcripts between these two texts from the comparison.
    pub(crate) fn skip_between(mut self, from: &'static str, to: &'static str) -> Self {
        self.unstable.push((from, to));
        self
    }

    /// Returns where a file is: its name in a document is absolute, or relative to `/srv`.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        let path = Path::new("/srv").join(name);
        self.folder.path().join(path.strip_prefix("/").unwrap())
    }

    /// Runs these commands, then those of the document.
    #[track_caller]
    pub(crate) fn run(&self, before: &str, document: &str) {
        let blocks = CodeBlock::all(document);
        assert!(blocks.iter().any(|block| matches!(block.language, "sh" | "console")));
        for block in &blocks {
            if let Some(name) = block.file_name {
                fs::write(self.at(name), block.lines.join("\n") + "\n").unwrap();
            }
        }
        let transcripts: Vec<_> = blocks.iter().flat_map(transcribed_commands).collect();
        let output = self.bash(&self.script(before, &blocks));
        let lines = blocks.iter().flat_map(|block| &block.lines);
        for (_, text) in lines.filter_map(|line| line.split_once("# prints: ")) {
            assert!(output.lines().any(|line| line == text), "no {text:?} in:\n{output}");
        }
        for (number, (command, expected)) in transcripts.iter().enumerate() {
            let printed = fs::read_to_string(self.at(&transcript_file(number))).unwrap();
            let printed = printed.replace(self.folder.path().to_str().unwrap(), "");
            transcript::check(command, &self.stable(expected), &self.stable(&printed));
        }
    }

    /// Returns the commands as a script. Each command of a `console` block prints to a file.
    fn script(&self, before: &str, blocks: &[CodeBlock<'_>]) -> String {
        // Commands are shown as they run, and not in the files.
        let mut script = String::from("exec 3>&2; BASH_XTRACEFD=3; set -xeuo pipefail\n");
        script.extend(before.lines().map(|line| self.adapt(line)));
        let mut transcripts_count = 0;
        for block in blocks {
            if block.language == "sh" {
                script.extend(block.lines.iter().map(|line| self.adapt(line)));
            }
            for (command, _) in transcribed_commands(block) {
                let file = transcript_file(transcripts_count);
                writeln!(script, "{{\n{}}} > {file} 2>&1", self.adapt(command)).unwrap();
                transcripts_count += 1;
            }
        }
        script
    }

    /// Runs a script, which must succeed. Returns what it printed.
    #[track_caller]
    fn bash(&self, script: &str) -> String {
        let binaries = Path::new(env!("CARGO_BIN_EXE_warren")).parent().unwrap();
        let path = format!("{}:{}", binaries.display(), std::env!("PATH"));
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-c", script]).stdin(Stdio::null());
        shell.current_dir(self.at(".")).env("PATH", path).env("TMPDIR", DISK);
        let output = shell.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
        text
    }

    /// Replaces the parts of a transcript that depend on measurements by `…`.
    fn stable(&self, text: &str) -> String {
        self.unstable.iter().fold(text.to_owned(), |text, (from, to)| {
            let Some((start, rest)) = text.split_once(from) else { return text };
            let end = rest.find(to).map_or("", |at| &rest[at..]);
            format!("{start}{from} … {end}")
        })
    }

    /// Returns a line of a document as a command for the shell: with names and addresses of this
    /// machine, passwords in files instead of at a prompt, and little time for measurements.
    /// Commands that run until Ctrl-C are interrupted.
    fn adapt(&self, line: &str) -> String {
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        // A reader of the README and of the first guide builds Warren before.
        if line.starts_with("make ") || line.starts_with("export PATH=$PWD/target") {
            return String::new();
        }
        let mut command =
            self.replacements.iter().fold(line.to_owned(), |line, (document, here)| {
                // A replaced word is an argument, or the beginning of one.
                line.replace(&format!(" {document}"), &format!(" {here}"))
            });
        let has = |words: &[&str]| words.iter().any(|words| line.contains(words));
        if has(&[
            "account add",
            "account password",
            "account recovery-phrase",
            "--login",
            "--with-vault",
            "warren actual-budget",
        ]) {
            command += " --password-file password.txt";
        }
        if has(&["account password"]) {
            command += " --new-password-file password.txt";
        }
        command = with_little_time(&command);
        if has(&["warren serve"]) {
            let has_address = if has(&["--listen"]) { "" } else { " --listen 127.0.0.1:0" };
            let any_port = command.replace(":4600", ":0").replace(":5006", ":0");
            return interrupted(&format!("{any_port}{has_address}"));
        }
        if line.ends_with("--watch") {
            return interrupted(&command);
        }
        if has(&["warren doctor", "warren recover"]) {
            // 3, 4 and 5 report on the file (the guide to `warren doctor`).
            return format!("{command} || {{ status=$?; (( 3 <= status && status <= 5 )); }}\n");
        }
        command + "\n"
    }
}

/// Returns the commands of a `console` block, each with the text that it prints.
fn transcribed_commands<'a>(block: &CodeBlock<'a>) -> Vec<(&'a str, String)> {
    let mut commands: Vec<(&str, String)> = Vec::new();
    let is_transcript = block.language == "console";
    for line in block.lines.iter().filter(|_| is_transcript) {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command, String::new()));
        } else {
            let (_, text) = commands.last_mut().expect("a `console` block begins with a command");
            writeln!(text, "{line}").unwrap();
        }
    }
    commands
}

/// Returns the name of the file for the output of a command in a `console` block.
fn transcript_file(number: usize) -> String {
    format!("transcript-{number}.txt")
}

/// Returns the command with the least time for measurements.
fn with_little_time(command: &str) -> String {
    const LEAST: &str = "--minutes 0.01";
    if command.starts_with("warren bench") {
        return format!("{command} --rounds-min 1 --rounds-max 1 --seconds 0.001");
    }
    if let Some((start, rest)) = command.split_once("--minutes ") {
        let rest = rest.trim_start_matches(|character: char| !character.is_whitespace());
        return format!("{start}{LEAST}{rest}");
    }
    let measures = command.starts_with("warren tune") && !command.contains("--check");
    let measures = measures && !command.contains("--profile");
    if measures { format!("{command} {LEAST}") } else { command.to_owned() }
}

/// Returns a command that is interrupted when it has printed a line. It must end with status 0 or
/// by the signal. Without job control (`set -m`), bash starts commands in the background with SIGINT ignored.
fn interrupted(command: &str) -> String {
    format!(
        "(set -m; rm -f printed.txt; {command} > printed.txt &\n\
         until test -s printed.txt; do kill -0 %1; sleep 0.1; done; kill -INT %1\n\
         {{ wait %1 || (( $? == 130 )); }} 2> /dev/null; cat printed.txt)\n"
    )
}

//! The programs that the tests run: `warren`, its server, the `sqlite3` shell, Python.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use crate::output_schema;

pub(crate) const WARREN: &str = env!("CARGO_BIN_EXE_warren");

/// A program's exit status and output.
pub(crate) struct CommandOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    pub(crate) fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.stdout, self.stderr);
        self
    }

    /// Returns the only JSON value of the output.
    #[track_caller]
    pub(crate) fn value(&self) -> Value {
        let value = serde_json::from_str(&self.stdout);
        value.unwrap_or_else(|error| panic!("{error}: {:?}, {}", self.stdout, self.stderr))
    }

    /// Asserts that it failed with this code ([`Self::fault`]).
    #[track_caller]
    pub(crate) fn refused(&self, code: &str) {
        assert_eq!(self.fault(code), None);
    }

    /// Returns the difference from the output of a `--json` command that fails with this code: one
    /// value with code, message and hint, and the exit status of the code. Returns `None` if there
    /// is no difference.
    pub(crate) fn fault(&self, code: &str) -> Option<String> {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_default();
        let error = value["error"].as_object();
        let keys: Vec<_> = error.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let is_form = keys == ["code", "hint", "message"] && value["error"]["message"] != "";
        let is_code = value["error"]["code"] == code;
        let is_status = self.status.code() == Some(exit_status(code));
        let Self { status, stdout, stderr } = self;
        (!is_form || !is_code || !is_status)
            .then(|| format!("not {code}: {status}: {stdout}{stderr}"))
    }
}

/// Returns the exit status of a code, as documented.
fn exit_status(code: &str) -> i32 {
    let document = include_str!("../../../../docs/reference/formats/4-errors.md");
    let is_row = |line: &&str| line.contains(&format!("`{code}`")) && !line.starts_with("| `");
    let rows = document.lines().filter(|line| line.starts_with("| "));
    let status = rows.filter(is_row).find_map(|line| line.split('|').nth(1)?.trim().parse().ok());
    status.unwrap_or(1)
}

/// Runs `warren` to its end.
pub(crate) fn warren(arguments: &[&str]) -> CommandOutput {
    let ran = Command::new(WARREN).args(arguments).stdin(Stdio::null()).output().unwrap();
    let ran = CommandOutput::new(ran);
    output_schema::check(arguments, &ran.stdout);
    ran
}

/// Runs `warren` to its end with these environment variables, in this folder.
pub(crate) fn warren_in(
    folder: &str,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> CommandOutput {
    let mut command = Command::new(WARREN);
    command.args(arguments).envs(variables.iter().copied()).current_dir(folder);
    let ran = CommandOutput::new(command.stdin(Stdio::null()).output().unwrap());
    output_schema::check(arguments, &ran.stdout);
    ran
}

/// Runs `warren … --json`, which must succeed, and returns its value.
#[track_caller]
pub(crate) fn json(arguments: &[&str]) -> Value {
    warren(&[arguments, &["--json"]].concat()).succeeded().value()
}

/// Returns the command that runs a program as root.
pub(crate) fn as_root(program: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.arg("-n").arg(program);
    sudo
}

/// Runs a program with this standard input.
pub(crate) fn with_input(command: &mut Command, input: &str) -> CommandOutput {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    CommandOutput::new(child.wait_with_output().unwrap())
}

/// Runs `warren …` with an answer waiting on its standard input.
pub(crate) fn warren_asking(arguments: &[&str], input: &str) -> CommandOutput {
    let ran = with_input(Command::new(WARREN).args(arguments), input);
    output_schema::check(arguments, &ran.stdout);
    ran
}

/// Starts `warren …`; the caller must kill it.
pub(crate) fn start(arguments: &[&str]) -> Child {
    start_with(&[], Stdio::inherit(), arguments)
}

/// Starts `warren …` with these environment variables and this standard error.
pub(crate) fn start_with(variables: &[(&str, &str)], stderr: Stdio, arguments: &[&str]) -> Child {
    let mut command = Command::new(WARREN);
    command.args(arguments).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
}

/// Runs statements in the `sqlite3` shell, which stops at the first that fails.
pub(crate) fn shell(file: &str, sql: &str) -> CommandOutput {
    let mut command = Command::new("sqlite3");
    with_input(
        command.args(["-batch", "-bail", "-noheader", file]),
        &format!(".timeout 30000\n{sql}\n"),
    )
}

/// The `sqlite3` shell with an open transaction on a file, until dropped.
pub(crate) struct OpenTransaction(Child);

impl OpenTransaction {
    /// Begins a transaction, and returns once the statements have run. The last one must return
    /// one row.
    pub(crate) fn begin(file: &str, statements: &str) -> Self {
        let mut command = Command::new("sqlite3");
        command.args(["-batch", file]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let input = shell.stdin.as_mut().unwrap();
        input.write_all(format!("{statements};\n").as_bytes()).unwrap();
        input.flush().unwrap();
        let mut row = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut row).unwrap();
        assert_ne!(row, "", "it ended");
        Self(shell)
    }

    /// Returns the process id of the shell.
    pub(crate) fn process(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        // The shell ends with its input.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// Returns the shell's output; the shell must succeed.
#[track_caller]
pub(crate) fn sql(file: &str, sql: &str) -> String {
    shell(file, sql).succeeded().stdout.trim_end().to_owned()
}

/// Returns the path of a Python with the packages of `tests/requirements.txt`.
pub(crate) fn python() -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
    let python = std::env::var_os("WARREN_PYTHON").unwrap_or_else(|| folder.into());
    let python = PathBuf::from(python);
    let there = python.is_file();
    assert!(there, "no {}: `make test` installs it; WARREN_PYTHON names another", python.display());
    python
}

/// Returns the first line of a program's output.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

/// A running `warren serve`, which is killed on drop.
pub(crate) struct ServeProcess {
    child: Child,
    /// The server's URL, `http://127.0.0.1:…`.
    pub(crate) address: String,
    /// The URL of the gateway for Actual's apps, if it is enabled.
    pub(crate) actual: Option<String>,
    /// The address for mail, if the server receives it.
    pub(crate) lmtp: Option<String>,
}

impl ServeProcess {
    /// Starts a server, and returns once it accepts connections.
    pub(crate) fn start(data: &str, options: &[&str]) -> Self {
        let serve =
            ["serve", "--listen", "127.0.0.1:0", "--json", "--log", "error", "--data", data];
        Self::new(start(&[&serve, options].concat()))
    }

    /// Takes over a server that was started with `--json`.
    pub(crate) fn new(mut child: Child) -> Self {
        let line = first_line(&mut child);
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        output_schema::check(&["serve", "--json"], &line);
        let text = |member: &str| said[member].as_str().map(str::to_owned);
        let (actual, lmtp) = (text("actual_budget_address"), text("lmtp_address"));
        Self { child, address: text("address").unwrap(), actual, lmtp }
    }

    /// Takes over a server that was started without `--json`, so that its log is for people.
    pub(crate) fn for_people(mut child: Child) -> Self {
        let line = first_line(&mut child);
        let rest = line.strip_prefix("Warren is running at ");
        let address = rest.and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, address, actual: None, lmtp: None }
    }

    /// Returns the host and the port, `127.0.0.1:…`.
    pub(crate) fn host_and_port(&self) -> &str {
        self.address.rsplit('/').next().unwrap()
    }

    /// Returns its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), None, "it had ended by itself: {status}");
    }

    /// Requests a stop, as an operator or systemd does, and waits for the end.
    pub(crate) fn stop(mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Returns the answer to a `GET` of a path.
    pub(crate) fn get(&self, path: &str) -> String {
        self.get_as(path, "nobody")
    }

    /// Returns the answer to a `GET` of a path with a token.
    pub(crate) fn get_as(&self, path: &str, token: &str) -> String {
        let request = ureq::get(format!("{}{path}", self.address));
        let mut answer = request.header("authorization", format!("Bearer {token}")).call().unwrap();
        let mut text = String::new();
        answer.body_mut().as_reader().read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the answer to a call of the operator's; with a body it is a POST.
    pub(crate) fn admin(&self, call: &str, token: &str, body: Option<&Value>) -> Value {
        let (url, bearer) =
            (format!("{}/v1/admin/{call}", self.address), format!("Bearer {token}"));
        let answer = match body {
            None => ureq::get(url).header("authorization", bearer).call(),
            Some(body) => ureq::post(url)
                .header("authorization", bearer)
                .header("content-type", "application/json")
                .send(body.to_string()),
        };
        serde_json::from_reader(answer.unwrap().body_mut().as_reader()).unwrap()
    }
}

impl Drop for ServeProcess {
    #[expect(clippy::print_stdout, reason = "libtest shows it when the test fails")]
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            println!("the server {} had ended: {status}", self.address);
        }
        // The server may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

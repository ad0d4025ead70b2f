//! The processes under the faults: the shipped binary as a server and as a device's `sync`, and a
//! plain client that remembers every answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crdt::{Fingerprint, NodeId, Timestamp};
use serde_json::{Value, json};

pub(crate) const WARREN: &str = env!("CARGO_BIN_EXE_warren");

pub(crate) const PASSWORD: &str = "a pass-phrase of ada's own";
pub(crate) const ADMIN: &str = "the-operators-token-of-this-test";

/// The time limit of anything that a process does, on a busy machine.
pub(crate) const TIME_MAX: Duration = Duration::from_mins(2);

type EnvironmentVariables = Vec<(String, OsString)>;

/// A running `warren serve`, which is killed on drop.
pub(crate) struct FaultedServer {
    child: Child,
    /// The server's URL, `http://127.0.0.1:…`.
    pub(crate) address: String,
    /// The URL of the gateway for Actual's apps.
    pub(crate) gateway: String,
    log: PathBuf,
}

impl FaultedServer {
    /// Starts a server, and returns once it accepts connections. The error is its exit status and
    /// its output.
    pub(crate) fn start(
        folder: &Path,
        environment: EnvironmentVariables,
    ) -> Result<Self, (ExitStatus, String)> {
        Self::start_with(folder, environment, &[])
    }

    /// Starts a server with further options.
    pub(crate) fn start_with(
        folder: &Path,
        environment: EnvironmentVariables,
        options: &[&str],
    ) -> Result<Self, (ExitStatus, String)> {
        let (token, log) = (folder.join("admin.txt"), folder.join("server.log"));
        fs::write(&token, format!("{ADMIN}\n")).unwrap();
        let mut command = Command::new(WARREN);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(["--actual-budget", "127.0.0.1:0", "--actual-budget-open-registration"])
            .arg("--data")
            .arg(folder.join("data"))
            .arg("--admin-token-file")
            .arg(token)
            .args(options)
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match serde_json::from_str::<Value>(&line) {
            Ok(said) if said["address"].is_string() => {
                let text = |name: &str| said[name].as_str().unwrap().to_owned();
                Ok(Self {
                    child,
                    address: text("address"),
                    gateway: text("actual_budget_address"),
                    log,
                })
            }
            _ => {
                let status = child.wait().unwrap();
                Err((status, fs::read_to_string(&log).unwrap() + &line))
            }
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends `SIGTERM` and waits. Returns `None` if the server had to be killed.
    pub(crate) fn stop(mut self) -> Option<ExitStatus> {
        let kill = format!("kill -TERM {}", self.child.id());
        drop(Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status());
        wait(&mut self.child, TIME_MAX)
    }

    /// Kills the server, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the value of a metric that has no labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let url = format!("{}/metrics", self.address);
        let operator = [("authorization", &*format!("Bearer {ADMIN}"))];
        let text = String::from_utf8(send("GET", &url, &operator, &[]).unwrap().body).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap().parse().unwrap()
    }

    /// Returns the log since the folder was created.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for FaultedServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits by polling until a process ends; kills one that takes longer than `time_max`.
pub(crate) fn wait(child: &mut Child, time_max: Duration) -> Option<ExitStatus> {
    let until = now() + time_max;
    while now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    drop(child.kill());
    drop(child.wait());
    None
}

#[expect(clippy::disallowed_methods, reason = "this test's one clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs a command. Returns its status (`None`: it hung) and the output of both streams.
pub(crate) fn warren(
    arguments: &[&str],
    folder: &Path,
    environment: EnvironmentVariables,
) -> (Option<ExitStatus>, String) {
    let mut command = Command::new(WARREN);
    command.args(arguments).current_dir(folder).envs(environment).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, receiver) = mpsc::channel();
    let streams: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    for mut stream in streams {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            sender.send(text).unwrap();
        });
    }
    let status = wait(&mut child, TIME_MAX);
    let said: Vec<_> = receiver.iter().take(2).collect();
    (status, said.concat())
}

/// The response to a request.
pub(crate) struct FaultedResponse {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl FaultedResponse {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the error code of a refusal, or else the status.
    fn code(&self) -> String {
        match self.value()["error"]["code"].as_str() {
            Some(code) => code.to_owned(),
            None => self.status.to_string(),
        }
    }
}

pub(crate) fn send(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<FaultedResponse> {
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIME_MAX))
        .build()
        .new_agent();
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent.run(request.body(body).unwrap()).ok()?;
    let body = answer.body_mut().with_config().limit(u64::MAX).read_to_vec().ok()?;
    Some(FaultedResponse { status: answer.status().as_u16(), body })
}

/// A plain client's record of its messages, of those that were acknowledged, and of the refusals
/// that it received.
pub(crate) struct SendRecord {
    sent_count: u64,
    /// The last page that was sent.
    page: Vec<(Timestamp, Vec<u8>)>,
    acknowledged: BTreeMap<Timestamp, Vec<u8>>,
    /// The size of a message's content in bytes.
    content_bytes: usize,
    pub(crate) codes: BTreeMap<String, u32>,
}

impl Default for SendRecord {
    fn default() -> Self {
        Self {
            sent_count: 0,
            page: Vec::new(),
            acknowledged: BTreeMap::new(),
            content_bytes: 65,
            codes: BTreeMap::new(),
        }
    }
}

/// 2024-01-01T00:00:00Z, which every clock has passed.
const START_MS: u64 = 1_704_067_200_000;

impl SendRecord {
    pub(crate) fn record_error(&mut self, code: impl Into<String>) {
        *self.codes.entry(code.into()).or_default() += 1;
    }

    /// Sends a JSON request to the API, and counts an error by its code.
    pub(crate) fn call(
        &mut self,
        server: &FaultedServer,
        (method, path): (&str, &str),
        token: &str,
        body: &Value,
    ) -> Option<FaultedResponse> {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let answer = send(method, &format!("{}{path}", server.address), &headers, &body);
        match &answer {
            None => self.record_error("no answer"),
            Some(answer) if answer.status >= 400 => self.record_error(answer.code()),
            Some(_) => {}
        }
        answer
    }

    /// Creates an empty record for contents of another size.
    pub(crate) fn with_content_bytes(content_bytes: usize) -> Self {
        Self { content_bytes, ..Self::default() }
    }

    /// Returns the record as it is after `count` messages that were all acknowledged.
    pub(crate) fn from_acknowledged(count: u64, content_bytes: usize) -> Self {
        let mut ledger = Self::with_content_bytes(content_bytes);
        ledger.write_page(count);
        ledger.acknowledged.extend(std::mem::take(&mut ledger.page));
        ledger
    }

    fn write_page(&mut self, count: u64) {
        let numbers = self.sent_count..self.sent_count + count;
        self.sent_count = numbers.end;
        let message = |number: u64| {
            let timestamp = Timestamp::new(START_MS + 7 * number, 0, NodeId(1)).unwrap();
            let mut content = vec![0];
            content.extend(number.to_le_bytes().iter().cycle().take(self.content_bytes - 1));
            (timestamp, content)
        };
        self.page = numbers.map(message).collect();
    }

    /// Pushes `count` messages. Returns whether they were acknowledged.
    pub(crate) fn push(&mut self, server: &FaultedServer, token: &str, count: u64) -> bool {
        self.write_page(count);
        self.push_again(server, token)
    }

    /// Pushes the last page again.
    pub(crate) fn push_again(&mut self, server: &FaultedServer, token: &str) -> bool {
        let message = |(timestamp, content): &(Timestamp, Vec<u8>)| {
            let content = BASE64_STANDARD.encode(content);
            json!({"timestamp": timestamp.to_string(), "content": content})
        };
        let messages: Vec<_> = self.page.iter().map(message).collect();
        let body = json!({"messages": messages});
        let answer = self.call(server, ("POST", "/v1/sync/delta"), token, &body);
        let is_acknowledged = answer.is_some_and(|answer| answer.status == 200);
        if is_acknowledged {
            self.acknowledged.extend(self.page.iter().cloned());
        }
        is_acknowledged
    }

    /// Returns what is wrong with the vault: an acknowledged message is missing or differs, or the
    /// fingerprint is not that of the messages.
    pub(crate) fn check_vault(&self, server: &FaultedServer, token: &str) -> Vec<String> {
        let (found, recorded) = match pull_all(server, token) {
            Ok(pulled) => pulled,
            Err(error) => return vec![error],
        };
        let is_lost =
            |(timestamp, content): &(&Timestamp, &Vec<u8>)| found.get(*timestamp) != Some(*content);
        let lost = self.acknowledged.iter().filter(is_lost).count();
        let mut wrong = Vec::new();
        if lost > 0 {
            wrong.push(format!("LOST: {lost} of {} acknowledged", self.acknowledged.len()));
        }
        let mut computed = Fingerprint::default();
        for (timestamp, content) in &found {
            computed += Fingerprint::from_message(*timestamp, content);
        }
        let computed =
            json!({"count": computed.count, "digest": format!("{:032x}", computed.digest)});
        if recorded != computed {
            wrong.push(format!("FINGERPRINT: recorded {recorded}, computed {computed}"));
        }
        wrong
    }
}

/// Pulls all messages of the server, and the fingerprint that it reports.
fn pull_all(
    server: &FaultedServer,
    token: &str,
) -> Result<(BTreeMap<Timestamp, Vec<u8>>, Value), String> {
    let (mut all, mut cursor) = (BTreeMap::new(), 0);
    loop {
        let url = format!("{}/v1/sync/delta?cursor={cursor}&limit=40000", server.address);
        let bearer = format!("Bearer {token}");
        let answer = send("GET", &url, &[("authorization", &bearer)], &[]);
        let answer = answer.ok_or("PULL: no answer")?;
        if answer.status != 200 {
            return Err(format!("PULL: {}", answer.code()));
        }
        let value = answer.value();
        for message in value["messages"].as_array().unwrap() {
            let timestamp = message["timestamp"].as_str().unwrap().parse().unwrap();
            let content = BASE64_STANDARD.decode(message["content"].as_str().unwrap()).unwrap();
            if all.insert(timestamp, content).is_some() {
                return Err("TWICE in the set".to_owned());
            }
        }
        cursor = value["cursor"].as_u64().unwrap();
        if value["more"] != true {
            return Ok((all, value["fingerprint"].clone()));
        }
    }
}

/// Copies a folder with all its contents.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

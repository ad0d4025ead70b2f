//! Plays scenarios on a server: sends their requests, reads the answers, and compares or records.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Request;
use ureq::http::response::Parts;

use crate::actual_server::{ActualServer, ActualServerKind};
use crate::answer;
use crate::cases::{
    CaseFile, RecordedHeader, RecordedRequest, RecordedResponse, RecordedScenario, RecordedStep,
};
use crate::compare::{ResponseDifference, compare};
use crate::messages::{MessageCase, SyncRequestCase};
use crate::placeholders::Placeholders;

/// The time limit of one request, on a busy machine.
const REQUEST_TIME_MAX: Duration = Duration::from_mins(1);
/// The number of simultaneous scenarios, each with a server of its own.
const WORKERS_COUNT: usize = 2;

/// The maximum number of plays of a scenario for which a busy machine may be too slow.
const TRIES_COUNT_MAX: usize = 10;

/// A step whose answer differs from the expected one.
pub(crate) struct ScenarioFailure {
    pub(crate) scenario: String,
    pub(crate) step: String,
    pub(crate) request: String,
    pub(crate) differences: Vec<ResponseDifference>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlayPurpose {
    Compare,
    /// The answers are recorded as the expected ones.
    Record,
}

/// Plays every scenario, on a fresh server unless it continues another. `options` are for
/// `warren serve`.
pub(crate) fn play_all(
    files: &mut [CaseFile],
    kind: ActualServerKind,
    options: &[&str],
    purpose: PlayPurpose,
) -> Vec<ScenarioFailure> {
    let mut groups: Vec<Vec<(String, &mut RecordedScenario)>> = Vec::new();
    for file in files {
        let name = file.name();
        for scenario in &mut file.scenarios {
            if !scenario.continues {
                groups.push(Vec::new());
            }
            let title = format!("{name}: {}", scenario.name);
            groups.last_mut().expect("the first continues none").push((title, scenario));
        }
    }
    let waiting = Mutex::new(groups.into_iter().enumerate());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS_COUNT {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    let Some((place, mut group)) = next else { break };
                    let hurries = group.iter().any(|(_, scenario)| scenario.hurries.is_some());
                    let tries = if hurries { TRIES_COUNT_MAX } else { 1 };
                    let mut last = Vec::new();
                    for _ in 0..tries {
                        last = play_group(&mut group, kind, options, purpose);
                        if last.is_empty() {
                            break;
                        }
                    }
                    failures.lock().unwrap().push((place, last));
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort_by_key(|(place, _)| *place);
    failures.into_iter().flat_map(|(_, failures)| failures).collect()
}

/// Plays a group of scenarios on a server of their own.
fn play_group(
    group: &mut [(String, &mut RecordedScenario)],
    kind: ActualServerKind,
    options: &[&str],
    purpose: PlayPurpose,
) -> Vec<ScenarioFailure> {
    let target = ActualServer::start(kind, options);
    let mut player = ScenarioPlayer::new(target.address(), kind, purpose);
    for (title, scenario) in group {
        player.play(scenario, title);
    }
    player.failures
}

/// Plays scenarios on one server.
pub(crate) struct ScenarioPlayer<'a> {
    address: &'a str,
    kind: ActualServerKind,
    purpose: PlayPurpose,
    agent: Agent,
    names: Placeholders,
    /// All series that were sent.
    series: Vec<MessageCase>,
    pub(crate) failures: Vec<ScenarioFailure>,
}

impl<'a> ScenarioPlayer<'a> {
    pub(crate) fn new(address: &'a str, kind: ActualServerKind, purpose: PlayPurpose) -> Self {
        let (names, series, failures) = (Placeholders::default(), Vec::new(), Vec::new());
        Self { address, kind, purpose, agent: agent(), names, series, failures }
    }

    pub(crate) fn play(&mut self, scenario: &mut RecordedScenario, title: &str) {
        for step in &mut scenario.steps {
            let asked = step.body.sync.as_ref();
            self.series.extend(asked.into_iter().flat_map(|asked| asked.series().cloned()));
            let differences = match ask(&self.agent, self.address, step, &self.names) {
                Err(error) => vec![no_answer(step, &error)],
                Ok((parts, body)) => {
                    let (_, path) = step.method_and_path();
                    let found = answer::read(&parts, &body, path, &step.names, &mut self.names);
                    self.judge(step, found)
                }
            };
            if !differences.is_empty() {
                self.failures.push(ScenarioFailure {
                    scenario: title.to_owned(),
                    step: step.name.clone(),
                    request: one_line(step),
                    differences,
                });
            }
        }
    }

    fn judge(
        &self,
        step: &mut RecordedStep,
        mut found: RecordedResponse,
    ) -> Vec<ResponseDifference> {
        if self.purpose == PlayPurpose::Record {
            if let Some(sync) = &mut found.sync {
                sync.fold(&self.series);
            }
            step.expected = Some(found);
            return Vec::new();
        }
        let wanted = step.warren.as_ref().filter(|_| self.kind == ActualServerKind::Warren);
        let expected = wanted.map(|wanted| &wanted.answer).or(step.expected.as_ref());
        let carried = step.body.sync.as_ref().map(SyncRequestCase::timestamps).unwrap_or_default();
        compare(expected.unwrap_or(&RecordedResponse::default()), &found, &carried)
    }
}

fn no_answer(step: &RecordedStep, error: &ureq::Error) -> ResponseDifference {
    let expected = step.expected.as_ref().map(|answer| answer.status.to_string());
    ResponseDifference {
        place: "answer".to_owned(),
        expected,
        found: Some(format!("none: {error}")),
    }
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .max_redirects(0)
        .max_idle_connections(0)
        .timeout_global(Some(REQUEST_TIME_MAX))
        .user_agent("")
        .accept_encoding("")
        .build();
    Agent::new_with_config(config)
}

fn ask(
    agent: &Agent,
    address: &str,
    step: &RecordedStep,
    names: &Placeholders,
) -> Result<(Parts, Vec<u8>), ureq::Error> {
    let (method, path) = step.method_and_path();
    let (body, content_type) = encode(&step.body, names);
    let mut request =
        Request::builder().method(method).uri(format!("{address}{}", names.fill(path)));
    let is_set = step.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
    if let Some(content_type) = content_type.filter(|_| !is_set) {
        request = request.header("content-type", content_type);
    }
    for (name, values) in &step.headers {
        let values = match values {
            RecordedHeader::One(value) => std::slice::from_ref(value),
            RecordedHeader::Several(values) => values,
        };
        for value in values {
            request = request.header(name, names.fill(value));
        }
    }
    let response = match body {
        Some(body) => agent.run(request.body(body)?)?,
        None => agent.run(request.body(())?)?,
    };
    let (parts, mut body) = response.into_parts();
    Ok((parts, body.with_config().limit(u64::MAX).read_to_vec()?))
}

/// Returns a body's bytes, and the content type that is sent unless a header sets another.
fn encode(
    asked: &RecordedRequest,
    names: &Placeholders,
) -> (Option<Vec<u8>>, Option<&'static str>) {
    match asked {
        RecordedRequest { json: Some(json), .. } => {
            (Some(names.fill_json(json).to_string().into_bytes()), Some("application/json"))
        }
        RecordedRequest { sync: Some(sync), .. } => {
            (Some(sync.encode(names)), Some("application/actual-sync"))
        }
        RecordedRequest { text: Some(text), .. } => (Some(names.fill(text).into_bytes()), None),
        RecordedRequest { hex: Some(hex), .. } => (Some(from_hex(hex)), None),
        RecordedRequest { fill: Some(bytes), .. } => (Some(vec![b'a'; *bytes]), None),
        _ => (None, None),
    }
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "half a byte: {text}");
    let pairs = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Returns a request as one line of a report.
fn one_line(step: &RecordedStep) -> String {
    let mut line = step.request.clone();
    for (name, value) in &step.headers {
        line = format!("{line} {name}: {}", serde_json::to_string(value).unwrap());
    }
    let body = serde_json::to_string(&step.body).unwrap();
    if body == "{}" { line } else { format!("{line} {body}") }
}

//! The recorded cases in `vectors/actual/cases`: requests with the published server's answers.
//! `docs/reference/formats/16-recorded-cases.md` describes the fields.
//!
//! # Not here
//! - How they are played → `scenario_player.rs`; when two answers are equal → `compare.rs`; how
//!   the files are laid out → `layout.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::layout::layout;
use crate::messages::{SyncRequestCase, SyncResponseCase};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/actual/cases");

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseFile {
    #[serde(skip)]
    path: PathBuf,
    /// The subject of its scenarios, in a sentence.
    about: String,
    pub(crate) scenarios: Vec<RecordedScenario>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedScenario {
    pub(crate) name: String,
    /// Whether the scenario runs on the server of the preceding scenario, and with its names;
    /// otherwise on a server without data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) continues: bool,
    /// The reason why a busy machine may be too slow for it; it is then played again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hurries: Option<String>,
    pub(crate) steps: Vec<RecordedStep>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedStep {
    pub(crate) name: String,
    /// The method and the path.
    pub(crate) request: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, RecordedHeader>,
    #[serde(flatten)]
    pub(crate) body: RecordedRequest,
    /// Names for values of the answer, by JSON pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) names: BTreeMap<String, String>,
    /// The recorded answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<RecordedResponse>,
    /// The deviation, if Warren must answer differently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warren: Option<ExpectedDeviation>,
}

/// A request's body: at most one of its fields is set.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct RecordedRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hex: Option<String>,
    /// The length of a body that consists of the letter `a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fill: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<SyncRequestCase>,
}

/// A header that is sent, or several of one name.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum RecordedHeader {
    One(String),
    Several(Vec<String>),
}

/// An answer, without the values that differ from run to run and those that clients do not use. At
/// most one of the bodies is set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedResponse {
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<SyncResponseCase>,
    /// The name of the web app's file with these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// Whether the body is a page that reports an error to a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) error_page: bool,
}

/// The answer that Warren must give instead, and the reason.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct ExpectedDeviation {
    why: String,
    #[serde(flatten)]
    pub(crate) answer: RecordedResponse,
}

impl CaseFile {
    /// Reads all case files, in the order of their names.
    pub(crate) fn read_all() -> Vec<Self> {
        let entries = fs::read_dir(FOLDER).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let file = serde_json::from_str(&text);
        let file: Self = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_owned(), ..file }
    }

    /// Writes the case file to the path that it was read from.
    pub(crate) fn write(&self) {
        fs::write(&self.path, self.text()).unwrap();
    }

    fn text(&self) -> String {
        layout(&serde_json::to_value(self).unwrap())
    }

    /// Returns the file's name, such as `account.json`.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

impl RecordedStep {
    /// Returns the method and the path, such as `POST` and `/account/login`.
    pub(crate) fn method_and_path(&self) -> (&str, &str) {
        self.request.split_once(' ').unwrap()
    }
}

/// Returns the faults of a case that are visible without a server.
fn faults(file: &CaseFile) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for scenario in &file.scenarios {
        if !scenario.continues {
            names.clear();
        }
        for step in &scenario.steps {
            let mut fault = |what: &str| {
                faults.push(format!("{}: {}: {}: {what}", file.name(), scenario.name, step.name));
            };
            let Some(expected) = &step.expected else {
                fault("no answer: WARREN_RECORD=1 asks the published server for it");
                continue;
            };
            if step.warren.as_ref().is_some_and(|wanted| wanted.answer == *expected) {
                fault("Warren's answer is not another");
            }
            let asked = RecordedStep { expected: None, warren: None, ..step.clone() };
            let asked = serde_json::to_string(&asked).unwrap();
            for used in asked.split("{{").skip(1) {
                let used = used.split("}}").next().unwrap();
                if !names.iter().any(|name| name == used) {
                    fault(&format!("nothing before it is named {used}"));
                }
            }
            for name in step.names.keys() {
                if names.contains(name) {
                    fault(&format!("something else is named {name}"));
                }
                names.push(name.clone());
            }
        }
    }
    faults
}

#[test]
fn cases_are_complete_and_laid_out() {
    let files = CaseFile::read_all();
    let mut found: Vec<String> = files.iter().flat_map(faults).collect();
    for file in &files {
        if file.text() != fs::read_to_string(&file.path).unwrap() {
            found.push(format!("{}: WARREN_RECORD=1 would write it otherwise", file.name()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(!files.is_empty());
}

#[test]
fn faults_of_cases_are_found() {
    let step =
        |name: &str, body: &str, named: &str, expected: Option<&RecordedResponse>| RecordedStep {
            name: name.to_owned(),
            request: "POST /".to_owned(),
            body: RecordedRequest { json: Some(body.into()), ..RecordedRequest::default() },
            names: BTreeMap::from([(named.to_owned(), "/data/token".to_owned())]),
            expected: expected.cloned(),
            ..RecordedStep::default()
        };
    let answer = RecordedResponse { status: 200, ..RecordedResponse::default() };
    let mut same = step("same", "", "d", Some(&answer));
    same.warren = Some(ExpectedDeviation { why: String::new(), answer: answer.clone() });
    let scenario = |name: &str, continues, steps| RecordedScenario {
        name: name.to_owned(),
        continues,
        hurries: None,
        steps,
    };
    let scenarios = vec![
        scenario(
            "s",
            true,
            vec![
                step("early", "{{a}}", "a", Some(&answer)),
                step("late", "{{a}} {{aa}}", "b", Some(&answer)),
                step("unanswered", "", "c", None),
                same,
            ],
        ),
        scenario("t", true, vec![step("on", "{{a}}", "b", Some(&answer))]),
        scenario("u", false, vec![step("anew", "{{a}}", "b", Some(&answer))]),
    ];
    let file = CaseFile { path: "f.json".into(), about: String::new(), scenarios };
    let expected = [
        "f.json: s: early: nothing before it is named a",
        "f.json: s: late: nothing before it is named aa",
        "f.json: s: unanswered: no answer: WARREN_RECORD=1 asks the published server for it",
        "f.json: s: same: Warren's answer is not another",
        "f.json: t: on: something else is named b",
        "f.json: u: anew: nothing before it is named a",
    ];
    assert_eq!(faults(&file), expected);
}

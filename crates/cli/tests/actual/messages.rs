//! Requests and answers of `/sync/sync`: protobuf on the wire, JSON in case files.
//!
//! The wire types are declared here once more and not taken from Warren, whose mistakes they are to
//! find: written from the descriptor that the published server carries.

use std::collections::BTreeSet;

use crdt::Timestamp;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::hex::hex as to_hex;
use crate::names::Names;
use crate::play::from_hex;

/// A request in a case file.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct SyncAsked {
    file_id: String,
    group_id: String,
    key_id: String,
    since: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Listed>,
}

/// An answer in a case file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncAnswer {
    messages: Vec<Listed>,
    /// JSON text, byte for byte.
    pub(crate) merkle: String,
}

/// A message in a case file, or many.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Listed {
    /// Timestamp, and content as text.
    Plain(String, String),
    Full {
        timestamp: String,
        encrypted: bool,
        hex: String,
    },
    /// `count` messages, the first at `from`, each `step_ms` after the one before it, of the same
    /// counter and node; the content of number n, from 0, is `content` with n after it.
    Series {
        from: String,
        count: u64,
        step_ms: u64,
        content: String,
    },
}

/// A message as it is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Envelope {
    #[prost(string, tag = "1")]
    pub(crate) timestamp: String,
    #[prost(bool, tag = "2")]
    pub(crate) is_encrypted: bool,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) content: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SyncRequest {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<Envelope>,
    #[prost(string, tag = "2")]
    file_id: String,
    #[prost(string, tag = "3")]
    group_id: String,
    #[prost(string, tag = "5")]
    key_id: String,
    #[prost(string, tag = "6")]
    since: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SyncResponse {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<Envelope>,
    #[prost(string, tag = "2")]
    merkle: String,
}

impl SyncAsked {
    pub(crate) fn encode(&self, names: &Names) -> Vec<u8> {
        let request = SyncRequest {
            messages: expand(&self.messages),
            file_id: names.fill(&self.file_id),
            group_id: names.fill(&self.group_id),
            key_id: names.fill(&self.key_id),
            since: names.fill(&self.since),
        };
        request.encode_to_vec()
    }

    /// The timestamps that it carries.
    pub(crate) fn timestamps(&self) -> BTreeSet<String> {
        expand(&self.messages).into_iter().map(|message| message.timestamp).collect()
    }

    pub(crate) fn series(&self) -> impl Iterator<Item = &Listed> {
        self.messages.iter().filter(|listed| matches!(listed, Listed::Series { .. }))
    }
}

impl SyncAnswer {
    /// `None` if it is no such message.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let SyncResponse { messages, merkle } = SyncResponse::decode(body).ok()?;
        Some(Self { messages: messages.into_iter().map(Listed::one).collect(), merkle })
    }

    pub(crate) fn messages(&self) -> Vec<Envelope> {
        expand(&self.messages)
    }

    /// Names each of the series whole where it is found.
    pub(crate) fn fold(&mut self, series: &[Listed]) {
        for series in series {
            let run: Vec<Listed> =
                expand(std::slice::from_ref(series)).into_iter().map(Listed::one).collect();
            let found = self.messages.windows(run.len()).position(|window| window == run);
            if let Some(at) = found {
                self.messages.splice(at..at + run.len(), [series.clone()]);
            }
        }
    }
}

impl Listed {
    fn one(Envelope { timestamp, is_encrypted, content }: Envelope) -> Self {
        match String::from_utf8(content) {
            Ok(text) if !is_encrypted && !text.contains(char::is_control) => {
                Self::Plain(timestamp, text)
            }
            Ok(text) => {
                Self::Full { timestamp, encrypted: is_encrypted, hex: to_hex(text.as_bytes()) }
            }
            Err(error) => {
                let hex = to_hex(error.as_bytes());
                Self::Full { timestamp, encrypted: is_encrypted, hex }
            }
        }
    }
}

fn expand(listed: &[Listed]) -> Vec<Envelope> {
    let mut messages = Vec::new();
    for listed in listed {
        let message = |timestamp: &str, is_encrypted, content| Envelope {
            timestamp: timestamp.to_owned(),
            is_encrypted,
            content,
        };
        match listed {
            Listed::Plain(timestamp, text) => {
                messages.push(message(timestamp, false, text.clone().into_bytes()));
            }
            Listed::Full { timestamp, encrypted, hex } => {
                messages.push(message(timestamp, *encrypted, from_hex(hex)));
            }
            Listed::Series { from, count, step_ms, content } => {
                let from: Timestamp = from.parse().unwrap();
                messages.extend((0..*count).map(|n| {
                    let millis = from.millis() + n * step_ms;
                    let at = Timestamp::new(millis, from.counter(), from.node()).unwrap();
                    message(&at.to_string(), false, format!("{content}{n}").into_bytes())
                }));
            }
        }
    }
    messages
}

#[test]
fn messages_survive_the_wire_and_series_are_named_again() {
    let series = Listed::Series {
        from: "2024-03-05T10:00:00.000Z-0000-aaaaaaaaaaaaaaaa".to_owned(),
        count: 3,
        step_ms: 60_000,
        content: "m".to_owned(),
    };
    let plain = Listed::Plain("2023".to_owned(), "before".to_owned());
    let full = |timestamp: &str, encrypted, hex: &str| Listed::Full {
        timestamp: timestamp.to_owned(),
        encrypted,
        hex: hex.to_owned(),
    };
    let listed = vec![plain, series.clone(), full("2025", true, "41"), full("2026", false, "00ff")];
    let messages = expand(&listed);
    assert_eq!(messages[3].timestamp, "2024-03-05T10:02:00.000Z-0000-aaaaaaaaaaaaaaaa");
    assert_eq!((messages.len(), &*messages[3].content), (6, &b"m2"[..]));
    let response = SyncResponse { messages, merkle: "{}".to_owned() };
    let mut answer = SyncAnswer::decode(&response.encode_to_vec()).unwrap();
    assert_eq!(answer.messages.len(), 6);
    answer.fold(&[series]);
    assert_eq!(answer, SyncAnswer { messages: listed, merkle: "{}".to_owned() });
    assert_eq!(SyncAnswer::decode(b"\xff"), None);
}

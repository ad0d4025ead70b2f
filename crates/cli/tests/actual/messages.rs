//! Requests and answers of `/sync/sync`: protobuf on the wire, JSON in case files.
//!
//! The wire types are declared here again, from the descriptor in the published server. They are
//! not Warren's, whose mistakes they must find.

use std::collections::BTreeSet;

use crdt::Timestamp;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::hex::hex as to_hex;
use crate::placeholders::Placeholders;
use crate::scenario_player::from_hex;

/// A request in a case file.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct SyncRequestCase {
    file_id: String,
    group_id: String,
    key_id: String,
    since: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageCase>,
}

/// An answer in a case file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncResponseCase {
    messages: Vec<MessageCase>,
    /// The JSON text, byte for byte.
    pub(crate) merkle: String,
}

/// A message in a case file, or a series of messages.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum MessageCase {
    /// A timestamp, and the content as text.
    Plain(String, String),
    Full {
        timestamp: String,
        encrypted: bool,
        hex: String,
    },
    /// A series of `count` messages, the first at `from`, each `step_ms` after the preceding one,
    /// with the same counter and node; the content of number n, from 0, is `content` followed by
    /// n.
    Series {
        from: String,
        count: u64,
        step_ms: u64,
        content: String,
    },
}

/// A message as it is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TestEnvelope {
    #[prost(string, tag = "1")]
    pub(crate) timestamp: String,
    #[prost(bool, tag = "2")]
    pub(crate) is_encrypted: bool,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) content: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PublishedSyncRequest {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<TestEnvelope>,
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
struct PublishedSyncResponse {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<TestEnvelope>,
    #[prost(string, tag = "2")]
    merkle: String,
}

impl SyncRequestCase {
    pub(crate) fn encode(&self, names: &Placeholders) -> Vec<u8> {
        let request = PublishedSyncRequest {
            messages: expand(&self.messages),
            file_id: names.fill(&self.file_id),
            group_id: names.fill(&self.group_id),
            key_id: names.fill(&self.key_id),
            since: names.fill(&self.since),
        };
        request.encode_to_vec()
    }

    /// Returns the timestamps of its messages.
    pub(crate) fn timestamps(&self) -> BTreeSet<String> {
        expand(&self.messages).into_iter().map(|message| message.timestamp).collect()
    }

    pub(crate) fn series(&self) -> impl Iterator<Item = &MessageCase> {
        self.messages.iter().filter(|listed| matches!(listed, MessageCase::Series { .. }))
    }
}

impl SyncResponseCase {
    /// Decodes a body; returns `None` if it is not such a message.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let PublishedSyncResponse { messages, merkle } =
            PublishedSyncResponse::decode(body).ok()?;
        Some(Self { messages: messages.into_iter().map(MessageCase::one).collect(), merkle })
    }

    pub(crate) fn messages(&self) -> Vec<TestEnvelope> {
        expand(&self.messages)
    }

    /// Replaces each complete run of messages of a series by the series.
    pub(crate) fn fold(&mut self, series: &[MessageCase]) {
        for series in series {
            let run: Vec<MessageCase> =
                expand(std::slice::from_ref(series)).into_iter().map(MessageCase::one).collect();
            let found = self.messages.windows(run.len()).position(|window| window == run);
            if let Some(at) = found {
                self.messages.splice(at..at + run.len(), [series.clone()]);
            }
        }
    }
}

impl MessageCase {
    fn one(TestEnvelope { timestamp, is_encrypted, content }: TestEnvelope) -> Self {
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

fn expand(listed: &[MessageCase]) -> Vec<TestEnvelope> {
    let mut messages = Vec::new();
    for listed in listed {
        let message = |timestamp: &str, is_encrypted, content| TestEnvelope {
            timestamp: timestamp.to_owned(),
            is_encrypted,
            content,
        };
        match listed {
            MessageCase::Plain(timestamp, text) => {
                messages.push(message(timestamp, false, text.clone().into_bytes()));
            }
            MessageCase::Full { timestamp, encrypted, hex } => {
                messages.push(message(timestamp, *encrypted, from_hex(hex)));
            }
            MessageCase::Series { from, count, step_ms, content } => {
                let from: Timestamp = from.parse().unwrap();
                messages.extend((0..*count).map(|n| {
                    let millis = from.millis() + n * step_ms;
                    let at = Timestamp::new(millis, from.counter(), from.node_id()).unwrap();
                    message(&at.to_string(), false, format!("{content}{n}").into_bytes())
                }));
            }
        }
    }
    messages
}

#[test]
fn messages_survive_the_wire_and_series_are_named_again() {
    let series = MessageCase::Series {
        from: "2024-03-05T10:00:00.000Z-0000-aaaaaaaaaaaaaaaa".to_owned(),
        count: 3,
        step_ms: 60_000,
        content: "m".to_owned(),
    };
    let plain = MessageCase::Plain("2023".to_owned(), "before".to_owned());
    let full = |timestamp: &str, encrypted, hex: &str| MessageCase::Full {
        timestamp: timestamp.to_owned(),
        encrypted,
        hex: hex.to_owned(),
    };
    let listed = vec![plain, series.clone(), full("2025", true, "41"), full("2026", false, "00ff")];
    let messages = expand(&listed);
    assert_eq!(messages[3].timestamp, "2024-03-05T10:02:00.000Z-0000-aaaaaaaaaaaaaaaa");
    assert_eq!((messages.len(), &*messages[3].content), (6, &b"m2"[..]));
    let response = PublishedSyncResponse { messages, merkle: "{}".to_owned() };
    let mut answer = SyncResponseCase::decode(&response.encode_to_vec()).unwrap();
    assert_eq!(answer.messages.len(), 6);
    answer.fold(&[series]);
    assert_eq!(answer, SyncResponseCase { messages: listed, merkle: "{}".to_owned() });
    assert_eq!(SyncResponseCase::decode(b"\xff"), None);
}

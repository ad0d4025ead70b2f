//! Speaks the API of Actual Budget's sync server: protobuf, one call that pushes and pulls.
//!
//! The published server and Warren's gateway both have this API. A file of the API is a user's
//! vault here. A cursor is a position in time: the milliseconds since the first message, before
//! which the device has every message.

use std::sync::atomic::{AtomicU32, Ordering};

use ::actual::wire::{ActualSyncRequest, ActualSyncResponse, MessageEnvelope, SYNC_MEDIA_TYPE};
use anyhow::{Context, ensure};
use bytes::Bytes;
use crdt::{Message, NodeId, Timestamp};
use prost::Message as _;
use serde::Deserialize;
use serde_json::json;

use super::device::{LoadDevice, PostRequest, PullResult, request};
use crate::http::BenchConnection;
use crate::message_generator::FIRST_MS;
use crate::service::device;

/// The distance of a push's `since` from its newest message: later than all messages that other
/// devices push at the same time.
const AHEAD_MS: u64 = 1_000_000;
/// The counter for client addresses. The server allows one address 500 requests a minute, so each
/// request names another address: the benchmark measures the server's speed, not its limit.
static ADDRESS: AtomicU32 = AtomicU32::new(0);

#[derive(Deserialize)]
struct LoginResponse {
    data: LoginToken,
}

#[derive(Deserialize)]
struct LoginToken {
    token: String,
}

#[derive(Deserialize)]
struct ActualUploadResponse {
    #[serde(rename = "groupId")]
    group_id: String,
}

/// Sets the password of a fresh server; returns the token that all its users share.
pub(crate) async fn bootstrap(connection: &mut BenchConnection) -> anyhow::Result<String> {
    let headers = device::headers(&[("content-type", "application/json")])?;
    let body = json!({"password": "correct horse battery"}).to_string();
    let post = request("POST", "/account/bootstrap", &headers, body)?;
    let answer = connection.send(post).await?.success()?;
    Ok(serde_json::from_slice::<LoginResponse>(&answer)?.data.token)
}

pub(crate) async fn register(
    connection: &mut BenchConnection,
    token: &str,
    user: usize,
    devices: usize,
) -> anyhow::Result<Vec<LoadDevice>> {
    let file = format!("user{user}");
    let mut headers = device::headers(&[
        ("content-type", "application/encrypted-file"),
        ("x-actual-token", token),
        ("x-actual-file-id", &file),
        ("x-actual-name", &file),
        ("x-actual-format", "2"),
    ])?;
    headers.insert("x-forwarded-for", address().parse()?);
    let post = request("POST", "/sync/upload-user-file", &headers, "a budget")?;
    let answer = connection.send(post).await?.success()?;
    let group = serde_json::from_slice::<ActualUploadResponse>(&answer)?.group_id;
    let headers = device::headers(&[("content-type", SYNC_MEDIA_TYPE), ("x-actual-token", token)])?;
    let device = |node| {
        let place = (file.clone(), group.clone());
        LoadDevice { headers: headers.clone(), place, node, base: 0, cursor: 0 }
    };
    Ok(device::nodes(devices).map(device).collect())
}

fn address() -> String {
    let [_, a, b, c] = ADDRESS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// Builds a push. Its `since` is after all messages, so that the response contains none.
pub(crate) fn push(device: &LoadDevice, messages: &[Message]) -> anyhow::Result<PostRequest> {
    let newest = messages.last().context("nothing to push")?.timestamp.millis();
    sync(device, messages, newest + AHEAD_MS - FIRST_MS)
}

pub(crate) fn pushed(answer: Bytes) -> anyhow::Result<u64> {
    ActualSyncResponse::decode(answer)?;
    Ok(0)
}

pub(crate) fn pull(device: &LoadDevice, cursor: u64) -> anyhow::Result<PostRequest> {
    sync(device, &[], cursor)
}

/// Builds a request that sends the messages and asks for those after the cursor.
pub(crate) fn sync(
    device: &LoadDevice,
    messages: &[Message],
    cursor: u64,
) -> anyhow::Result<PostRequest> {
    ActualMessagePage::of(messages).post(device, cursor)
}

/// Messages encoded for the wire, independent of the device that sends them.
#[derive(Clone, Debug)]
pub(crate) struct ActualMessagePage {
    envelopes: Bytes,
    pub(crate) count: u64,
    /// The cursor after these messages.
    pub(crate) cursor: u64,
}

impl ActualMessagePage {
    pub(crate) fn of(messages: &[Message]) -> Self {
        let envelopes = messages.iter().map(|message| MessageEnvelope {
            timestamp: message.timestamp.to_string().into(),
            is_encrypted: false,
            content: message.content.clone(),
        });
        let request =
            ActualSyncRequest { messages: envelopes.collect(), ..ActualSyncRequest::default() };
        let newest = messages.last().map(|message| message.timestamp.millis() + 1 - FIRST_MS);
        Self {
            envelopes: request.encode_to_vec().into(),
            count: messages.len() as u64,
            cursor: newest.unwrap_or(0),
        }
    }

    /// Builds a request that sends the page and asks for the messages after the cursor.
    pub(crate) fn post(&self, device: &LoadDevice, cursor: u64) -> anyhow::Result<PostRequest> {
        let since =
            Timestamp::new(FIRST_MS + cursor, 0, NodeId(0)).context("the time is out of range")?;
        let (file_id, group_id) = device.place.clone();
        let since = since.to_string();
        let rest = ActualSyncRequest { file_id, group_id, since, ..ActualSyncRequest::default() };
        // Fields of a protobuf message may be concatenated, each encoded on its own.
        let mut body = Vec::with_capacity(self.envelopes.len() + rest.encoded_len());
        body.extend_from_slice(&self.envelopes);
        rest.encode_raw(&mut body);
        let mut request = request("POST", "/sync/sync", &device.headers, body)?;
        request.headers_mut().insert("x-forwarded-for", address().parse()?);
        Ok(request)
    }
}

pub(crate) fn pulled(answer: Bytes) -> anyhow::Result<PullResult> {
    let ActualSyncResponse { messages, .. } = ActualSyncResponse::decode(answer)?;
    let newest = messages
        .last()
        .map(|message| message.timestamp().context("a message has an invalid timestamp"));
    let cursor = newest.transpose()?.map_or(0, |newest| newest.millis() + 1 - FIRST_MS);
    Ok(PullResult { messages: messages.len() as u64, cursor })
}

/// Returns the trie of all messages of the service, from a response to a device that lacks none.
pub(crate) fn trie(answer: Bytes) -> anyhow::Result<String> {
    let ActualSyncResponse { messages, merkle } = ActualSyncResponse::decode(answer)?;
    ensure!(messages.is_empty(), "received {} messages that no other device sent", messages.len());
    Ok(merkle)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::runtime::Builder;

    use super::*;
    use crate::message_generator::{ContentKind, MessageGenerator, MessageSchedule};

    #[test]
    fn a_page_is_a_request_of_its_device() {
        let pace = MessageSchedule { at_once: 10, before_ms: 8, step_ms: 8 };
        let messages =
            MessageGenerator::of(ContentKind::Budget, 0, pace).next(11, NodeId(1)).unwrap();
        let page = ActualMessagePage::of(&messages);
        assert_eq!((page.count, page.cursor), (11, 9), "the last is 8 ms after the first");
        let place = ("file".to_owned(), "group".to_owned());
        let headers = hyper::HeaderMap::new();
        let device = LoadDevice { headers, place, node: NodeId(1), base: 0, cursor: 0 };
        let body = page.post(&device, page.cursor).unwrap().into_body();
        let runtime = Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(body.collect()).unwrap().to_bytes();
        let request = ActualSyncRequest::decode(body).unwrap();
        assert_eq!((request.file_id.as_str(), request.group_id.as_str()), ("file", "group"));
        assert_eq!(request.since, "2020-09-13T12:26:40.009Z-0000-0000000000000000");
        let sent: Vec<Timestamp> =
            request.messages.iter().map(|message| message.timestamp().unwrap()).collect();
        let expected: Vec<Timestamp> = messages.iter().map(|message| message.timestamp).collect();
        assert_eq!(sent, expected);
        assert_eq!(request.messages[10].content, messages[10].content);
    }
}

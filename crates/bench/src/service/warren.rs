//! Warren's own API, as protobuf.

use anyhow::ensure;
use bytes::Bytes;
use crdt::Message;
use prost::Message as _;
use protocol::{ClientRequest, ClientResponse, PROTOBUF, PullResponse, PushRequest, PushResponse};

use super::dialect::{self, Device, Post, Pulled, request};
use crate::http::Connection;

/// The first device was made with the account; it registers the others.
pub(crate) async fn enroll(
    connection: &mut Connection,
    token: &str,
    devices: usize,
) -> anyhow::Result<Vec<Device>> {
    let mut enrolled = Vec::with_capacity(devices);
    for node in dialect::nodes(devices) {
        let client = ClientRequest { name: "bench".to_owned(), ..ClientRequest::default() };
        let post = request("POST", "/v1/clients", &headers(token)?, client.encode_to_vec())?;
        let answer = connection.send(post).await?.success()?;
        let headers = headers(&ClientResponse::decode(answer)?.token)?;
        let place = (String::new(), String::new());
        enrolled.push(Device { headers, place, node, base: 0, cursor: 0 });
    }
    Ok(enrolled)
}

fn headers(token: &str) -> anyhow::Result<hyper::HeaderMap> {
    let bearer = format!("Bearer {token}");
    dialect::headers(&[
        ("authorization", &bearer),
        ("content-type", PROTOBUF),
        ("accept", PROTOBUF),
    ])
}

pub(crate) fn push(device: &Device, messages: Vec<Message>) -> anyhow::Result<Post> {
    let push = PushRequest {
        messages: messages.into_iter().map(Into::into).collect(),
        ..PushRequest::default()
    };
    request("POST", "/v1/sync/delta", &device.headers, push.encode_to_vec())
}

pub(crate) fn pushed(answer: Bytes) -> anyhow::Result<u64> {
    let response = PushResponse::decode(answer)?;
    ensure!(response.known == 0, "{} messages were known", response.known);
    Ok(response.cursor)
}

pub(crate) fn pulled(answer: Bytes) -> anyhow::Result<Pulled> {
    let PullResponse { messages, cursor, .. } = PullResponse::decode(answer)?;
    Ok(Pulled { messages: messages.len() as u64, cursor })
}

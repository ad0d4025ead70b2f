//! Speaks Warren's own API, as protobuf.

use anyhow::ensure;
use bytes::Bytes;
use crdt::Message;
use prost::Message as _;
use protocol::{
    PROTOBUF, PullResponse, PushRequest, PushResponse, RegisterDeviceRequest,
    RegisterDeviceResponse,
};

use super::device::{LoadDevice, PostRequest, PullResult, request};
use crate::http::BenchConnection;
use crate::service::device;

/// Registers the devices. The first device was created with the account; it registers the others.
pub(crate) async fn register(
    connection: &mut BenchConnection,
    token: &str,
    devices: usize,
) -> anyhow::Result<Vec<LoadDevice>> {
    let mut registered = Vec::with_capacity(devices);
    for node in device::nodes(devices) {
        let client =
            RegisterDeviceRequest { name: "bench".to_owned(), ..RegisterDeviceRequest::default() };
        let post = request("POST", "/v1/devices", &headers(token)?, client.encode_to_vec())?;
        let answer = connection.send(post).await?.success()?;
        let headers = headers(&RegisterDeviceResponse::decode(answer)?.token)?;
        let place = (String::new(), String::new());
        registered.push(LoadDevice { headers, place, node, base: 0, cursor: 0 });
    }
    Ok(registered)
}

fn headers(token: &str) -> anyhow::Result<hyper::HeaderMap> {
    let bearer = format!("Bearer {token}");
    device::headers(&[("authorization", &bearer), ("content-type", PROTOBUF), ("accept", PROTOBUF)])
}

pub(crate) fn push(device: &LoadDevice, messages: Vec<Message>) -> anyhow::Result<PostRequest> {
    let push = PushRequest {
        messages: messages.into_iter().map(Into::into).collect(),
        ..PushRequest::default()
    };
    request("POST", "/v1/sync/delta", &device.headers, push.encode_to_vec())
}

pub(crate) fn pushed(answer: Bytes) -> anyhow::Result<u64> {
    let response = PushResponse::decode(answer)?;
    ensure!(
        response.known_count == 0,
        "the server already had {} of the messages",
        response.known_count
    );
    Ok(response.cursor)
}

pub(crate) fn pulled(answer: Bytes) -> anyhow::Result<PullResult> {
    let PullResponse { messages, cursor, .. } = PullResponse::decode(answer)?;
    Ok(PullResult { messages: messages.len() as u64, cursor })
}

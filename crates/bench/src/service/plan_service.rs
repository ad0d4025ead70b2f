//! Speaks the API of the plan service in `bench/competitors/plan-service`: JSON.

use anyhow::ensure;
use crdt::Message;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::device::{LoadDevice, PostRequest, PullResult, request};
use crate::http::BenchConnection;
use crate::service::device;

#[derive(Deserialize)]
struct PlanRegisterResponse {
    token: String,
}

#[derive(Serialize)]
struct PlanUploadRequest<'a> {
    changes: Vec<PlanDeltaRequest<'a>>,
}

#[derive(Serialize)]
struct PlanDeltaRequest<'a> {
    change_id: String,
    todo_id: String,
    title: &'a str,
    updated_at: u64,
}

#[derive(Deserialize)]
struct PlanUploadResponse {
    stored: u64,
    cursor: u64,
}

#[derive(Deserialize)]
struct PlanDownloadResponse {
    changes: Vec<IgnoredAny>,
    cursor: u64,
}

pub(crate) async fn register(
    connection: &mut BenchConnection,
    user: usize,
    devices: usize,
) -> anyhow::Result<Vec<LoadDevice>> {
    let mut registered = Vec::with_capacity(devices);
    for node in device::nodes(devices) {
        let body = json!({"user": format!("user{user}"), "name": "bench"}).to_string();
        let headers = device::headers(&[("content-type", "application/json")])?;
        let post = request("POST", "/v1/clients", &headers, body)?;
        let answer = connection.send(post).await?.success()?;
        let bearer =
            format!("Bearer {}", serde_json::from_slice::<PlanRegisterResponse>(&answer)?.token);
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let headers = device::headers(&headers)?;
        let place = (String::new(), String::new());
        registered.push(LoadDevice { headers, place, node, base: 0, cursor: 0 });
    }
    Ok(registered)
}

/// Builds a push. Each change creates a new todo, like an insert into Warren's table.
pub(crate) fn push(device: &LoadDevice, messages: &[Message]) -> anyhow::Result<PostRequest> {
    let changes = messages.iter().map(|message| {
        let change_id = message.timestamp.to_string();
        let title = std::str::from_utf8(&message.content)?;
        let updated_at = message.timestamp.millis();
        Ok(PlanDeltaRequest { todo_id: change_id.clone(), change_id, title, updated_at })
    });
    let changes = changes.collect::<anyhow::Result<_>>()?;
    let body = serde_json::to_vec(&PlanUploadRequest { changes })?;
    request("POST", "/v1/sync/delta", &device.headers, body)
}

pub(crate) fn pushed(answer: &[u8]) -> anyhow::Result<u64> {
    let PlanUploadResponse { stored, cursor } = serde_json::from_slice(answer)?;
    ensure!(stored > 0, "nothing was stored");
    Ok(cursor)
}

pub(crate) fn pulled(answer: &[u8]) -> anyhow::Result<PullResult> {
    let PlanDownloadResponse { changes, cursor } = serde_json::from_slice(answer)?;
    Ok(PullResult { messages: changes.len() as u64, cursor })
}

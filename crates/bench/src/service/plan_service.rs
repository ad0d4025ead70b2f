//! The plan service in `bench/rivals/plan-service`: JSON.

use anyhow::ensure;
use crdt::Message;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dialect::{self, Device, Post, Pulled, request};
use crate::http::Connection;

#[derive(Deserialize)]
struct Registered {
    token: String,
}

#[derive(Serialize)]
struct Upload<'a> {
    changes: Vec<Delta<'a>>,
}

#[derive(Serialize)]
struct Delta<'a> {
    change_id: String,
    todo_id: String,
    title: &'a str,
    updated_at: u64,
}

#[derive(Deserialize)]
struct Uploaded {
    stored: u64,
    cursor: u64,
}

#[derive(Deserialize)]
struct Download {
    changes: Vec<IgnoredAny>,
    cursor: u64,
}

pub(crate) async fn enroll(
    connection: &mut Connection,
    user: usize,
    devices: usize,
) -> anyhow::Result<Vec<Device>> {
    let mut enrolled = Vec::with_capacity(devices);
    for node in dialect::nodes(devices) {
        let body = json!({"user": format!("user{user}"), "name": "bench"}).to_string();
        let headers = dialect::headers(&[("content-type", "application/json")])?;
        let post = request("POST", "/v1/clients", &headers, body)?;
        let answer = connection.send(post).await?.success()?;
        let bearer = format!("Bearer {}", serde_json::from_slice::<Registered>(&answer)?.token);
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let headers = dialect::headers(&headers)?;
        let place = (String::new(), String::new());
        enrolled.push(Device { headers, place, node, base: 0, cursor: 0 });
    }
    Ok(enrolled)
}

/// Each change makes a todo of its own, as an insert in Warren's table does.
pub(crate) fn push(device: &Device, messages: &[Message]) -> anyhow::Result<Post> {
    let changes = messages.iter().map(|message| {
        let change_id = message.timestamp.to_string();
        let title = std::str::from_utf8(&message.content)?;
        let updated_at = message.timestamp.millis();
        Ok(Delta { todo_id: change_id.clone(), change_id, title, updated_at })
    });
    let changes = changes.collect::<anyhow::Result<_>>()?;
    let body = serde_json::to_vec(&Upload { changes })?;
    request("POST", "/v1/sync/delta", &device.headers, body)
}

pub(crate) fn pushed(answer: &[u8]) -> anyhow::Result<u64> {
    let Uploaded { stored, cursor } = serde_json::from_slice(answer)?;
    ensure!(stored > 0, "nothing was stored");
    Ok(cursor)
}

pub(crate) fn pulled(answer: &[u8]) -> anyhow::Result<Pulled> {
    let Download { changes, cursor } = serde_json::from_slice(answer)?;
    Ok(Pulled { messages: changes.len() as u64, cursor })
}

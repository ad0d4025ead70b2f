//! A small body: JSON, or a form as browsers send it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use crate::gateway::Gate;
use crate::gateway::fault::Fault;

/// Bytes of a body that carries neither messages nor a file. The longest, a key's test, takes
/// some hundred.
const FORM_BYTES_MAX: usize = 1 << 20;

/// A body's fields. Of another media type it is one without fields.
pub(crate) struct Form {
    /// `None` if nothing was sent that could have fields.
    pub(crate) fields: Option<Map<String, Value>>,
}

impl Form {
    /// A field that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// A field, unless it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.as_ref()?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.text("token").filter(|token| !token.is_empty())
    }
}

impl FromRequest<Arc<Gate>> for Form {
    type Rejection = Fault;

    async fn from_request(request: Request, gate: &Arc<Gate>) -> Result<Self, Fault> {
        let media_type = media_type(request.headers()).to_owned();
        let body = read(gate, request.into_body(), FORM_BYTES_MAX).await?;
        let fields = match media_type.as_str() {
            _ if body.is_empty() => None,
            "application/json" => match serde_json::from_slice(&body).or(Err(Fault::NotJson))? {
                Value::Object(fields) => Some(fields),
                Value::Array(_) => None,
                _ => return Err(Fault::NotJson),
            },
            "application/x-www-form-urlencoded" => {
                let pairs = form_urlencoded::parse(&body);
                Some(
                    pairs.map(|(name, value)| (name.into(), Value::String(value.into()))).collect(),
                )
            }
            _ => None,
        };
        Ok(Self { fields })
    }
}

/// A media type without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Reads a body to its end. Each part of it must come in time, not the whole: uplinks are slow.
pub(crate) async fn read(gate: &Gate, mut body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let mut bytes = BytesMut::new();
    while let Some(data) = next(gate, &mut body).await? {
        if data.len() > bytes_max - bytes.len() {
            return Err(Fault::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// The next part of a body; `None` at its end.
pub(crate) async fn next(gate: &Gate, body: &mut Body) -> Result<Option<Bytes>, Fault> {
    loop {
        let frame = tokio::time::timeout(gate.services.request_timeout(), body.frame()).await;
        let Some(frame) = frame.or(Err(Fault::Timeout))? else { return Ok(None) };
        // Whoever sent it is gone and reads no answer.
        if let Ok(data) = frame.or(Err(Fault::Timeout))?.into_data() {
            return Ok(Some(data));
        }
    }
}

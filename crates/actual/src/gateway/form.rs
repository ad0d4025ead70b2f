//! A small body: JSON, or a form as browsers send it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use server::{BodyLimits, Holder, Incoming};

use crate::gateway::Gate;
use crate::gateway::fault::Fault;
use crate::gateway::head::Head;
use crate::wire::SYNC_MEDIA_TYPE;

/// Bytes of a body that carries neither messages nor a file. The longest, preferences, may take
/// nearly as much.
const FORM_BYTES_MAX: usize = 64 << 10;

const UPLOAD_MEDIA_TYPE: &str = "application/encrypted-file";

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

    /// The token, if the body has one; what is there and no text is nobody's.
    pub(crate) fn token(&self) -> Option<&str> {
        match self.get("token")? {
            Value::String(token) => Some(token.as_str()).filter(|token| !token.is_empty()),
            _ => Some("no token"),
        }
    }
}

impl FromRequest<Arc<Gate>> for Form {
    type Rejection = Fault;

    async fn from_request(request: Request, gate: &Arc<Gate>) -> Result<Self, Fault> {
        let media_type = media_type(request.headers());
        // Only logins come from pages' forms.
        let takes_forms = request.uri().path().starts_with("/account/");
        let mut room = gate.services.room(Holder::stranger(Head::of(&request).address));
        let body = gate.incoming(request.into_body(), FORM_BYTES_MAX, false);
        let body = body.whole(&mut room).await?;
        let fields = match media_type.as_str() {
            _ if body.is_empty() => None,
            "application/json" => match serde_json::from_slice(&body) {
                Ok(Value::Object(fields)) => Some(fields),
                Ok(Value::Array(_)) => None,
                _ => return Err(Fault::malformed("the body is no JSON with fields")),
            },
            "application/x-www-form-urlencoded" if takes_forms => {
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

/// A media type in lower case, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// The body, if it is one of those that are bytes to the published server: messages or a file.
/// Else a refusal, in this order: JSON that is none, a token that is nobody's, `otherwise`.
pub(crate) async fn raw(
    gate: &Arc<Gate>,
    request: Request,
    otherwise: Fault,
) -> Result<Body, Fault> {
    if [SYNC_MEDIA_TYPE, UPLOAD_MEDIA_TYPE].contains(&media_type(request.headers()).as_str()) {
        return Ok(request.into_body());
    }
    let head = Head::of(&request);
    let form = Form::from_request(request, gate).await?;
    gate.session(&head, form.token()).await?;
    Err(otherwise)
}

impl Gate {
    /// A body within its limits; of a long one the time grows with what has come.
    pub(crate) fn incoming(&self, body: Body, bytes_max: usize, is_long: bool) -> Incoming {
        let wait_max = self.services.request_timeout();
        Incoming::new(body, BodyLimits { bytes_max, wait_max, is_long })
    }
}

//! Reads small request bodies: JSON, or a form that a browser sent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use server::{BodyLimits, IncomingBody, MemoryOwner};

use crate::gateway::error::ActualError;
use crate::gateway::head::RequestHead;
use crate::gateway::state::ActualGateway;
use crate::wire::SYNC_MEDIA_TYPE;

/// The size limit of a body that carries neither messages nor a file. The longest such body,
/// preferences, may need almost as much.
const FORM_BYTES_MAX: usize = 64 << 10;

const UPLOAD_MEDIA_TYPE: &str = "application/encrypted-file";

/// The fields of a body. A body of an unexpected media type has no fields.
pub(crate) struct FormBody {
    /// The fields; `None` if the body cannot have any.
    pub(crate) fields: Option<Map<String, Value>>,
}

impl FormBody {
    /// Returns a field if it is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns a field, unless it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.as_ref()?.get(name).filter(|value| !value.is_null())
    }

    /// Returns the token, if the body has one; a value that is not a text is an invalid token.
    pub(crate) fn token(&self) -> Option<&str> {
        match self.get("token")? {
            Value::String(token) => Some(token.as_str()).filter(|token| !token.is_empty()),
            _ => Some("no token"),
        }
    }
}

impl FromRequest<Arc<ActualGateway>> for FormBody {
    type Rejection = ActualError;

    async fn from_request(
        request: Request,
        gateway: &Arc<ActualGateway>,
    ) -> Result<Self, ActualError> {
        let media_type = media_type(request.headers());
        // Browsers send forms only to log in.
        let takes_forms = request.uri().path().starts_with("/account/");
        let mut reservation = gateway.services.memory_reservation(MemoryOwner::anonymous(
            RequestHead::from_request(&request).address,
        ));
        let body = gateway.incoming(request.into_body(), FORM_BYTES_MAX, false);
        let body = body.whole(&mut reservation).await?;
        let fields = match media_type.as_str() {
            _ if body.is_empty() => None,
            "application/json" => match serde_json::from_slice(&body) {
                Ok(Value::Object(fields)) => Some(fields),
                Ok(Value::Array(_)) => None,
                _ => return Err(ActualError::malformed("the body is no JSON with fields")),
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

/// Returns the media type in lower case, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// Returns the body if the published server would treat it as bytes: messages or a file. Otherwise
/// it returns an error, in this order: invalid JSON, invalid token, `otherwise`.
pub(crate) async fn raw(
    gateway: &Arc<ActualGateway>,
    request: Request,
    otherwise: ActualError,
) -> Result<Body, ActualError> {
    if [SYNC_MEDIA_TYPE, UPLOAD_MEDIA_TYPE].contains(&media_type(request.headers()).as_str()) {
        return Ok(request.into_body());
    }
    let head = RequestHead::from_request(&request);
    let form = FormBody::from_request(request, gateway).await?;
    gateway.session(&head, form.token()).await?;
    Err(otherwise)
}

impl ActualGateway {
    /// Wraps a body with its limits; the time limit of a long one grows with the received bytes.
    pub(crate) fn incoming(&self, body: Body, bytes_max: usize, is_long: bool) -> IncomingBody {
        let wait_max = self.services.request_timeout();
        IncomingBody::new(body, BodyLimits { bytes_max, wait_max, is_long })
    }
}

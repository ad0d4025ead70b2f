//! Sends JSON like the published server: with a character set, because some clients compare it.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A response in JSON.
pub(crate) struct JsonUtf8(pub(crate) Value);

impl IntoResponse for JsonUtf8 {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json; charset=utf-8")], self.0.to_string()).into_response()
    }
}

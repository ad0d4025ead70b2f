//! JSON as the published server sends it: with a character set, which some clients compare.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// An answer in JSON.
pub(crate) struct JsonUtf8(pub(crate) Value);

impl IntoResponse for JsonUtf8 {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json; charset=utf-8")], self.0.to_string()).into_response()
    }
}

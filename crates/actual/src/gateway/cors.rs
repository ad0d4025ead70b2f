//! Allows requests from any page (CORS): the token has its own header, and there are no cookies.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_HEADERS, CONTENT_LENGTH, VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The methods that the published server lists.
const METHODS: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,PATCH,POST,DELETE");

/// Answers preflight requests on any path, and adds the CORS header to all other responses.
pub(crate) async fn answer(request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::OPTIONS {
        preflight(request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS))
    } else {
        next.run(request).await
    };
    let any = HeaderValue::from_static("*");
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

fn preflight(asked: Option<&HeaderValue>) -> Response {
    let vary = HeaderValue::from_static("Access-Control-Request-Headers");
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(VARY, vary);
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    if let Some(asked) = asked {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    response
}

//! The OpenAPI document: generated from the routes and completed with the parts common to all.
//!
//! # Invariants
//! - Each route is in the document because it is added with `OpenApiRouter`; a test sends a request
//!   to each.
//! - The limits in the document are those of the running server.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use protocol::{ErrorCode, ErrorResponse, VaultState};
use serde_json::{Value, json};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{self, ContentBuilder, Ref, RefOr};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::response::to_json;
use crate::app_state::AppState;
use crate::config::{Config, NAME_CHARACTERS_MAX};

/// Codes with which any call may be refused.
const ALWAYS: &[ErrorCode] = &[
    ErrorCode::Internal,
    ErrorCode::Malformed,
    ErrorCode::ServerDamaged,
    ErrorCode::ServerDiskFull,
    ErrorCode::Unavailable,
    ErrorCode::HostNotAllowed,
];
/// Codes with which a call with a body may be refused.
pub(crate) const BODY: &[ErrorCode] =
    &[ErrorCode::Busy, ErrorCode::Timeout, ErrorCode::TooLarge, ErrorCode::UnsupportedMediaType];
/// Codes with which a call with the admin token may be refused.
pub(crate) const OPERATOR: &[ErrorCode] =
    &[ErrorCode::AdminDisabled, ErrorCode::InvalidToken, ErrorCode::TooManyAttempts];
/// Codes with which a call with a device's token, which opens a vault, may be refused.
pub(crate) const TOKEN: &[ErrorCode] = &[ErrorCode::Busy, ErrorCode::InvalidToken];

/// Declares a type with the error responses of an operation: `error_responses!(Name: GROUP, …,
/// [Code, …])`.
macro_rules! error_responses {
    ($name:ident: $($group:ident,)* [$($code:ident),*]) => {
        struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::response::Response>,
            > {
                $crate::http::openapi::responses(&[$($group,)* &[$(protocol::ErrorCode::$code),*]])
            }
        }
    };
}
pub(crate) use error_responses;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Warren",
        description = "Stores each user's data in an encrypted vault and keeps all of their devices \
            in sync. Bodies are JSON or, depending on Content-Type and Accept, protobuf \
            (proto/warren.proto). Clients should decide on the code of an error; its message is \
            for people.",
    ),
    components(schemas(ErrorResponse, VaultState)),
    modifiers(&SecuritySchemes),
    tags(
        (name = "accounts", description = "Accounts, each with a login, a password and a vault"),
        (name = "devices", description = "The devices of an account, each with its own token"),
        (name = "sync", description = "Messages in order of arrival"),
        (name = "admin", description = "Calls for the operator, with the admin token; JSON only"),
        (name = "operation", description = "Health, metrics and this document"),
    ),
)]
struct BaseDocument;

struct SecuritySchemes;

impl Modify for SecuritySchemes {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let bearer = |about: &str| {
            let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
            SecurityScheme::Http(http.build())
        };
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", bearer("A device's token, from POST /v1/devices"));
        components.add_security_scheme("adminToken", bearer("The admin token"));
    }
}

pub(crate) fn base() -> openapi::OpenApi {
    BaseDocument::openapi()
}

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(document))
}

/// Returns this description of the API.
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "operation", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")),
)]
async fn document(Extension(document): Extension<OpenApiDocument>) -> impl IntoResponse {
    ([(CONTENT_TYPE, HeaderValue::from_static(protocol::JSON))], document.0)
}

/// The serialized document.
#[derive(Clone)]
pub(crate) struct OpenApiDocument(Bytes);

impl OpenApiDocument {
    pub(crate) fn new(routes: &openapi::OpenApi, config: &Config) -> Self {
        let mut document = serde_json::to_value(routes).expect("utoipa's types have a JSON form");
        for (schema, property, keyword, value) in grammar() {
            document["components"]["schemas"][schema]["properties"][property][keyword] = value;
        }
        let messages_count_max = json!(config.messages_count_max);
        document["components"]["schemas"]["PushRequest"]["properties"]["messages"]["maxItems"] =
            messages_count_max.clone();
        let operations = document["paths"].as_object_mut().expect("there are paths").values_mut();
        for operation in
            operations.flat_map(|path| path.as_object_mut().expect("has methods").values_mut())
        {
            limit_parameters(operation, &messages_count_max);
            offer_protobuf(operation);
        }
        Self(to_json(&document).into())
    }
}

/// Returns rules that types cannot express: schema, property, keyword, value. A password's length
/// is in bytes, so a few passwords that the document allows are refused.
fn grammar() -> [(&'static str, &'static str, &'static str, Value); 9] {
    let login = "[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}";
    let timestamp = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z-[0-9A-F]{4}-[0-9a-f]{16}$";
    [
        ("Message", "timestamp", "pattern", json!(timestamp)),
        ("AccountRequest", "login", "pattern", json!(format!("^{login}$"))),
        ("AccountRequest", "password", "minLength", json!(8)),
        ("AccountRequest", "password", "maxLength", json!(1024)),
        ("PasswordRequest", "login", "pattern", json!(format!("^{login}$"))),
        ("PasswordRequest", "new_password", "minLength", json!(8)),
        ("PasswordRequest", "new_password", "maxLength", json!(1024)),
        ("RegisterDeviceRequest", "login", "pattern", json!(format!("^({login})?$"))),
        ("RegisterDeviceRequest", "name", "maxLength", json!(NAME_CHARACTERS_MAX)),
    ]
}

fn limit_parameters(operation: &mut Value, messages_count_max: &Value) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    // Limits of other lists have their own maximum.
    let is_of_messages = |p: &&mut Value| p["name"] == "limit" && p["schema"]["maximum"].is_null();
    for parameter in parameters.into_iter().flatten().filter(is_of_messages) {
        parameter["schema"]["maximum"] = messages_count_max.clone();
    }
}

/// Offers wire types also as protobuf. Only operators' calls have none.
fn offer_protobuf(operation: &mut Value) {
    let is_for_operators = operation["tags"] == json!(["admin"]);
    let is_wire_type = |content: &Value| {
        let reference = content[protocol::JSON]["schema"]["$ref"].as_str();
        let is_error = |reference: &str| reference.ends_with("/ErrorResponse");
        reference.is_some_and(|reference| {
            is_error(reference) || !(is_for_operators || reference.ends_with("/Health"))
        })
    };
    let offer = |content: &mut Value| {
        if is_wire_type(content) {
            content[protocol::PROTOBUF] = json!({});
        }
    };
    operation.pointer_mut("/requestBody/content").into_iter().for_each(offer);
    let responses = operation["responses"].as_object_mut().expect("an operation has responses");
    responses.values_mut().filter_map(|response| response.get_mut("content")).for_each(offer);
}

/// Returns one response for each status of these codes.
pub(crate) fn responses(groups: &[&[ErrorCode]]) -> BTreeMap<String, RefOr<Response>> {
    let mut descriptions: BTreeMap<u16, String> = BTreeMap::new();
    for code in groups.iter().copied().chain([ALWAYS]).flatten() {
        let status = code.http_status().expect("a server answers with it");
        let description = descriptions.entry(status).or_default();
        writeln!(description, "- `{code}`: {}", code.meaning()).expect("a String takes all");
    }
    let response = |description: String| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorResponse")));
        let response = ResponseBuilder::new().description(description);
        response.content(protocol::JSON, content.build()).build().into()
    };
    descriptions.into_iter().map(|(status, text)| (status.to_string(), response(text))).collect()
}

//! Checks that the OpenAPI document and the routes agree.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::RunningServer;

/// The calls that `docs/reference/formats/3-http-api.md` describes.
const CALLS: &[(&str, &str)] = &[
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/readyz"),
    ("GET", "/v1/admin"),
    ("GET", "/v1/admin/accounts"),
    ("POST", "/v1/admin/maintenance"),
    ("GET", "/v1/admin/overview"),
    ("GET", "/v1/devices"),
    ("POST", "/v1/devices"),
    ("DELETE", "/v1/devices/{id}"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/sync/delta"),
    ("POST", "/v1/sync/delta"),
    ("GET", "/v1/sync/events"),
    ("GET", "/v1/sync/full"),
    ("POST", "/v1/sync/e2ee"),
    ("POST", "/v1/sync/erase"),
    ("POST", "/v1/sync/reconcile"),
    ("POST", "/v1/accounts"),
    ("PUT", "/v1/accounts/password"),
];

pub(crate) fn documented(openapi: &Value) -> BTreeSet<(String, &str)> {
    let paths = openapi["paths"].as_object().unwrap();
    let calls = paths.iter().flat_map(|(path, operations)| {
        let methods = operations.as_object().unwrap().keys();
        methods.map(|method| (method.to_uppercase(), path.as_str()))
    });
    calls.collect()
}

/// Asserts that the document has the status of a response. While the document itself is fetched,
/// there is none to check against.
pub(crate) fn check_documented(openapi: &Value, method: &str, path: &str, status: u16) {
    let Some(paths) = openapi["paths"].as_object() else { return };
    let path = path.split('?').next().unwrap();
    let matches = |template: &str| match template.split_once('{') {
        Some((prefix, _)) => {
            path.strip_prefix(prefix).is_some_and(|id| !id.is_empty() && !id.contains('/'))
        }
        None => template == path,
    };
    let Some((_, operations)) = paths.iter().find(|(template, _)| matches(template)) else {
        assert_eq!(status, 404, "{method} {path}");
        return;
    };
    let Some(operation) = operations.get(method.to_lowercase()) else {
        assert_eq!(status, 405, "{method} {path}");
        return;
    };
    let responses = operation["responses"].as_object().unwrap();
    assert!(responses.contains_key(&status.to_string()), "{method} {path} answered {status}");
}

#[test]
fn every_documented_call_is_routed_and_every_route_documented() {
    let server = RunningServer::new();
    let expected = CALLS.iter().map(|&(method, path)| (method.to_owned(), path));
    assert_eq!(documented(&server.openapi), expected.collect());
    for (method, template) in CALLS {
        let path = template.replace("{id}", "0123456789abcdef");
        let answer = server.send(method, &path, &[], ());
        assert!(![404, 405].contains(&answer.status), "{method} {path}: {}", answer.status);
    }
}

#[test]
fn the_document_names_the_limits_of_this_server() {
    let server = RunningServer::with(|config| config.messages_count_max = 1_234);
    let messages =
        &server.openapi["components"]["schemas"]["PushRequest"]["properties"]["messages"];
    assert_eq!(messages["maxItems"], 1_234);
    let parameters =
        server.openapi["paths"]["/v1/sync/delta"]["get"]["parameters"].as_array().unwrap();
    let limit = parameters.iter().find(|parameter| parameter["name"] == "limit").unwrap();
    assert_eq!(
        (&limit["schema"]["minimum"], &limit["schema"]["maximum"]),
        (&json!(1), &json!(1_234))
    );
}

/// A keyword that is set on a missing property would create one without a type.
#[test]
fn every_property_has_a_type() {
    let server = RunningServer::new();
    for (name, schema) in server.openapi["components"]["schemas"].as_object().unwrap() {
        // A schema of an enumeration has no properties.
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_typed = ["type", "$ref", "oneOf"].iter().any(|key| schema.get(key).is_some());
            assert!(is_typed, "{name}.{property}: {schema}");
        }
    }
}

#[test]
fn every_operation_has_its_errors_and_its_security() {
    let server = RunningServer::new();
    for (path, operations) in server.openapi["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let call = format!("{method} {path}");
            if path.starts_with("/v1/") && path != "/v1/openapi.json" {
                let body = &operation["responses"]["500"]["content"]["application/json"];
                assert_eq!(body["schema"]["$ref"], "#/components/schemas/ErrorResponse", "{call}");
            }
            let takes_token = operation["responses"].get("401").is_some();
            let is_admin = path.starts_with("/v1/admin/") || path == "/metrics";
            let scheme = if is_admin { r#""adminToken""# } else { r#""token""# };
            let has_scheme = operation["security"].to_string().contains(scheme);
            assert_eq!(has_scheme, takes_token, "{call}");
        }
    }
    let schemes = &server.openapi["components"]["securitySchemes"];
    assert_eq!(schemes["token"]["scheme"], "bearer");
}

#[test]
fn every_reference_leads_somewhere() {
    let server = RunningServer::new();
    let text = server.openapi.to_string();
    let references = text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    for reference in references {
        assert!(server.openapi.pointer(reference).is_some(), "{reference}");
    }
}

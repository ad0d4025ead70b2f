//! Actual's apps under a path of the server's own address, beside its API.

use std::fs;

use serde_json::{Value, json};

use crate::processes::{Server, warren};
use crate::support::Place;

fn post(url: &str, token: &str, body: &Value) -> (u16, Value) {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let request = agent.post(url).header("x-actual-token", token);
    let mut answer = request.content_type("application/json").send(body.to_string()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[test]
fn apps_come_in_under_a_path_and_the_api_stays_where_it_is() {
    let place = Place::new();
    let server = Server::start(&place.at("data"), &["--actual", "/actual"]);
    let at = |path: &str| format!("{}/actual{path}", server.address);
    assert!(server.get("/actual/account/needs-bootstrap").contains(r#""bootstrapped":false"#));
    let (status, answer) = post(&at("/account/bootstrap"), "", &json!({"password": "a"}));
    assert_eq!(status, 200, "{answer}");
    let token = answer["data"]["token"].as_str().unwrap();
    let (status, answer) = post(&at("/sync/user-get-key"), token, &json!({"fileId": "none"}));
    assert_eq!((status, answer), (400, json!("file-not-found")));
    assert_eq!(post(&at("/nothing"), token, &json!({})).0, 404);
    // An app's token opens nothing of the API, which is not below the path either.
    assert!(server.get("/healthz").contains("ok"));
    assert_eq!(post(&at("/v1/sync/delta"), token, &json!({})).0, 404);
    let bearer = ureq::get(format!("{}/v1/clients", server.address));
    let refused = bearer.header("authorization", format!("Bearer {token}")).call();
    assert!(matches!(refused, Err(ureq::Error::StatusCode(401))), "{refused:?}");
    // Counted by route.
    let metrics = server.get("/metrics");
    assert!(metrics.contains(r#"route="/actual/account/bootstrap""#), "{metrics}");
}

/// What `/info` says, with a web app whose package has this description.
fn version_with(package: &str) -> String {
    let place = Place::new();
    let web = place.at("package/build");
    fs::create_dir_all(&web).unwrap();
    place.write("package/build/index.html", "the app");
    place.write("package/package.json", package);
    let options = ["--actual", "127.0.0.1:0", "--actual-web", &web];
    let server = Server::start(&place.at("data"), &options);
    let url = format!("{}/info", server.actual.as_ref().unwrap());
    let text = ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap();
    let info: Value = serde_json::from_str(&text).unwrap();
    info["build"]["version"].as_str().unwrap().to_owned()
}

#[test]
fn the_web_app_is_told_its_own_version() {
    let package = r#"{"name": "@actual-app/web", "version": "27.1.0", "files": ["build"]}"#;
    assert_eq!(version_with(package), "27.1.0");
    let other = package.replace("@actual-app/web", "of-something-else");
    for package in [&*other, "no JSON", "{}"] {
        assert_eq!(version_with(package), "26.9.0");
    }
}

#[test]
fn what_the_options_want_is_said() {
    let place = Place::new();
    let data = place.at("data");
    for (options, expected) in [
        (&["--actual", "/elsewhere"][..], "127.0.0.1:5006"),
        (&["--actual-web", "x"], "--actual"),
        (&["--actual", "/actual", "--actual-web", "x"], "an address of its own"),
        (&["--actual", "127.0.0.1:0", "--actual-web", "x"], "index.html is missing"),
        (&["--actual", "127.0.0.1:0", "--actual-login", "-"], "--actual-login"),
    ] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data", &data];
        let ran = warren(&[&serve, options].concat());
        assert!(
            !ran.status.success() && ran.stderr.contains(expected),
            "{options:?}: {}",
            ran.stderr
        );
    }
}

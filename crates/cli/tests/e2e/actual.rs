//! Tests of Actual's apps under a path of the server's own address, next to its API.

use std::fs;

use serde_json::{Value, json};

use crate::fixture::SyncFixture;
use crate::processes::{ServeProcess, json as warren_json, warren};

fn post(url: &str, token: &str, body: &Value) -> (u16, Value) {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let request = agent.post(url).header("x-actual-token", token);
    let mut answer = request.content_type("application/json").send(body.to_string()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[test]
fn apps_come_in_under_a_path_and_the_api_stays_where_it_is() {
    let place = SyncFixture::new();
    let options = ["--actual-budget", "/actual", "--actual-budget-open-registration"];
    let server = ServeProcess::start(&place.at("data"), &options);
    let at = |path: &str| format!("{}/actual{path}", server.address);
    assert!(server.get("/actual/account/needs-bootstrap").contains(r#""bootstrapped":false"#));
    let (status, answer) = post(&at("/account/bootstrap"), "", &json!({"password": "a"}));
    assert_eq!(status, 200, "{answer}");
    let token = answer["data"]["token"].as_str().unwrap();
    let (status, answer) = post(&at("/sync/user-get-key"), token, &json!({"fileId": "none"}));
    assert_eq!((status, answer), (400, json!("file-not-found")));
    assert_eq!(post(&at("/nothing"), token, &json!({})).0, 404);
    // An app's token gives no access to the API, which does not exist below the path either.
    assert!(server.get("/healthz").contains("ok"));
    assert_eq!(post(&at("/v1/sync/delta"), token, &json!({})).0, 404);
    let bearer = ureq::get(format!("{}/v1/devices", server.address));
    let refused = bearer.header("authorization", format!("Bearer {token}")).call();
    assert!(matches!(refused, Err(ureq::Error::StatusCode(401))), "{refused:?}");
    // Requests are counted by route.
    let metrics = server.get("/metrics");
    assert!(metrics.contains(r#"route="/actual/account/bootstrap""#), "{metrics}");
}

#[test]
fn nobody_sets_the_first_password_over_the_network_unless_it_is_allowed() {
    let place = SyncFixture::new();
    let data = place.at("actual-data");
    let server = ServeProcess::start(&data, &["--actual-budget", "/actual"]);
    let at = |path: &str| format!("{}/actual{path}", server.address);
    let bootstrap = || post(&at("/account/bootstrap"), "", &json!({"password": "a"}));
    assert!(server.get("/actual/account/needs-bootstrap").contains(r#""bootstrapped":true"#));
    assert_eq!(bootstrap().0, 400);
    let password = fs::read_to_string(&place.password).unwrap();
    let login = json!({"loginMethod": "password", "password": password.trim_end()});
    assert_eq!(post(&at("/account/login"), "", &login).0, 400);
    warren_json(&["account", "add", "actual", "--data", &data, "--password-file", &place.password]);
    let (status, answer) = post(&at("/account/login"), "", &login);
    assert_eq!(status, 200, "{answer}");
    assert!(answer["data"]["token"].is_string(), "{answer}");
    assert_eq!(bootstrap().0, 400);
}

fn text(url: &str) -> String {
    ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

#[test]
fn actualpy_finds_the_files_that_it_asks_for() {
    let place = SyncFixture::new();
    let server = ServeProcess::start(&place.at("data"), &["--actual-budget", "/actual"]);
    let at = |path: &str| format!("{}/actual/{path}", server.address);
    let names = text(&at("data-file-index.txt"));
    let mut database = ureq::get(at("data/default-db.sqlite")).call().unwrap();
    assert!(database.body_mut().read_to_vec().unwrap().starts_with(b"SQLite format 3\0"));
    for name in names.lines() {
        let status = ureq::get(at(&format!("data/{name}"))).call().unwrap().status();
        assert_eq!(status.as_u16(), 200, "{name}");
    }
    assert!(names.lines().count() > 50, "{names}");
    let missing = ureq::get(at("data/migrations/none.sql")).call();
    assert!(matches!(missing, Err(ureq::Error::StatusCode(404))), "{missing:?}");
}

#[test]
fn a_trusted_proxy_logs_people_in() {
    let place = SyncFixture::new();
    let start = |proxy: &str| {
        let options = [
            "--actual-budget",
            "/actual",
            "--actual-budget-header-login",
            "--actual-budget-open-registration",
            "--trusted-proxy",
            proxy,
        ];
        ServeProcess::start(&place.at("data"), &options)
    };
    let login = |server: &ServeProcess, header: Option<&str>, body: &Value| {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut request = agent.post(format!("{}/actual/account/login", server.address));
        if let Some(password) = header {
            request = request.header("x-actual-password", password);
        }
        let mut answer = request.content_type("application/json").send(body.to_string()).unwrap();
        let answer_text = answer.body_mut().read_to_string().unwrap();
        let fields: Value = serde_json::from_str(&answer_text).unwrap();
        let reason = fields["reason"].as_str().unwrap_or("none").to_owned();
        (answer.status().as_u16(), reason)
    };
    let refused = |status: u16, reason: &str| (status, reason.to_owned());
    let server = start("127.0.0.1");
    let bootstrap = format!("{}/actual/account/bootstrap", server.address);
    assert_eq!(post(&bootstrap, "", &json!({"password": "a"})).0, 200);
    // The web app sends this request.
    let app = json!({"password": "", "loginMethod": "header"});
    assert_eq!(login(&server, Some("a"), &app), refused(200, "none"));
    assert_eq!(login(&server, Some("a"), &json!({})), refused(200, "none"));
    assert_eq!(login(&server, Some("b"), &app), refused(400, "invalid-password"));
    assert_eq!(login(&server, None, &app), refused(200, "invalid-header"));
    // A person may still type the password.
    let typed = json!({"password": "a", "loginMethod": "password"});
    assert_eq!(login(&server, None, &typed), refused(200, "none"));
    let told = server.get("/actual/account/needs-bootstrap");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["data"]["loginMethod"], "header");
    let methods = &told["data"]["availableLoginMethods"];
    assert_eq!((&methods[0]["method"], &methods[0]["active"]), (&json!("header"), &json!(1)));
    drop(server);

    let server = start("192.0.2.1");
    assert_eq!(login(&server, Some("a"), &app), refused(200, "proxy-not-trusted"));
    assert_eq!(login(&server, None, &typed), refused(200, "none"));
}

/// Returns the version in `/info`, with a web app whose package has this description.
fn version_with(package: &str) -> String {
    let place = SyncFixture::new();
    let web = place.at("package/build");
    fs::create_dir_all(&web).unwrap();
    place.write("package/build/index.html", "the app");
    place.write("package/package.json", package);
    let options = ["--actual-budget", "127.0.0.1:0", "--actual-budget-web", &web];
    let server = ServeProcess::start(&place.at("data"), &options);
    let info = text(&format!("{}/info", server.actual.as_ref().unwrap()));
    let info: Value = serde_json::from_str(&info).unwrap();
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
    let place = SyncFixture::new();
    let data = place.at("data");
    for (options, expected) in [
        (&["--actual-budget", "/elsewhere"][..], "127.0.0.1:5006"),
        (&["--actual-budget-web", "x"], "--actual-budget"),
        (&["--actual-budget", "/actual", "--actual-budget-web", "x"], "its own address"),
        (&["--actual-budget", "127.0.0.1:0", "--actual-budget-web", "x"], "index.html is missing"),
        (
            &["--actual-budget", "127.0.0.1:0", "--actual-budget-login", "-"],
            "--actual-budget-login",
        ),
        (&["--actual-budget", "/actual", "--actual-budget-header-login"], "--trusted-proxy"),
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

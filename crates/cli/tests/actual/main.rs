//! Actual Budget's published sync server and Warren in its place: both are started as their users
//! start them, and asked the same.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod target;

use std::fs;

use target::Target;

/// What a server has stored is there after `kill -9`, behind the same address.
fn check_goes_on(mut target: Target) {
    let bootstrapped = || {
        let url = format!("{}/account/needs-bootstrap", target.address());
        let answer = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer["data"]["bootstrapped"].as_bool().unwrap()
    };
    assert!(!bootstrapped());
    let post = ureq::post(format!("{}/account/bootstrap", target.address()));
    post.content_type("application/json").send(r#"{"password":"a"}"#).unwrap();
    assert!(bootstrapped());
    let address = target.address().to_owned();
    target.kill();
    target.restart();
    assert_eq!(target.address(), address);
    assert!(fs::read_dir(target.data()).unwrap().next().is_some());
    let url = format!("{address}/account/needs-bootstrap");
    let answer = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(answer.contains(r#""bootstrapped":true"#), "{answer}");
}

#[test]
fn the_published_server_goes_on_after_kill_9() {
    check_goes_on(Target::published());
}

#[test]
fn warren_goes_on_after_kill_9() {
    check_goes_on(Target::warren());
}

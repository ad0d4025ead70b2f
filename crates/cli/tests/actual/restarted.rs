//! Tests that a server keeps its data and its address after `kill -9`.

use std::fs;

use serde_json::Value;

use crate::actual_server::ActualServer;

fn check_goes_on(mut target: ActualServer) {
    assert!(!is_bootstrapped(&target));
    let post = ureq::post(format!("{}/account/bootstrap", target.address()));
    post.content_type("application/json").send(r#"{"password":"a"}"#).unwrap();
    assert!(is_bootstrapped(&target));
    let address = target.address().to_owned();
    target.kill();
    target.restart();
    assert_eq!(target.address(), address);
    assert!(fs::read_dir(target.data()).unwrap().next().is_some());
    assert!(is_bootstrapped(&target));
}

fn is_bootstrapped(target: &ActualServer) -> bool {
    let url = format!("{}/account/needs-bootstrap", target.address());
    let answer = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["data"]["bootstrapped"].as_bool().unwrap()
}

#[test]
fn the_published_server_goes_on_after_kill_9() {
    check_goes_on(ActualServer::published());
}

#[test]
fn warren_goes_on_after_kill_9() {
    check_goes_on(ActualServer::warren());
}

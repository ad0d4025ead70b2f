//! Tests of the server's own TLS, with a certificate that may change while it runs.

use std::fs;
use std::process::Command;

use crate::certificates::TestCertificates;
use crate::fixture::{SyncFixture, track_all};
use crate::processes::{CommandOutput, ServeProcess, warren, warren_in};

#[test]
fn a_device_syncs_over_tls_and_the_certificate_is_renewed_under_way() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let options = ["--tls-cert", &certificates.certificate, "--tls-key", &certificates.key];
    let server = ServeProcess::start(&place.data, &options);
    assert_eq!(certificates.shown(&server), "serial=0A");

    let file = place.chinook("a.db");
    track_all(&file);
    let sync = |file: &str, authority: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warren"));
        command.args(["sync", file, "--json"]).args(place.first_time(&server.address));
        CommandOutput::new(command.env("SSL_CERT_FILE", authority).output().unwrap())
    };
    // The device does not talk to a server that the machine does not trust.
    sync(&file, &place.write("nobody.pem", "")).refused("untrusted");
    assert_eq!(sync(&file, &certificates.authority).succeeded().value()["in_sync"], true);

    certificates.issue("0x0B");
    while certificates.shown(&server) != "serial=0B" {}
    // An unusable certificate does not replace the current one.
    fs::write(&certificates.certificate, "no certificate").unwrap();
    for _ in 0..3 {
        std::thread::park_timeout(std::time::Duration::from_millis(600));
        assert_eq!(certificates.shown(&server), "serial=0B");
    }
    certificates.issue("0x0C");
    while certificates.shown(&server) != "serial=0C" {}
    server.stop();
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let serve = |certificate: &str, key: &str| {
        warren(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data",
            &place.data,
            "--json",
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
        ])
    };
    let (certificate, key) = (&certificates.certificate, &certificates.key);
    let missing = place.at("missing.pem");
    for (certificate, key, code) in [
        (&missing, key, "file_not_found"),
        (&place.write("empty.pem", ""), key, "invalid_certificate"),
        (certificate, &missing, "file_not_found"),
        (certificate, &certificates.authority_key, "invalid_certificate"),
        (key, certificate, "invalid_certificate"),
    ] {
        serve(certificate, key).refused(code);
    }
}

/// Runs `warren` with a variable that names an empty file, so that the machine trusts no
/// authority.
fn warren_trusting_nobody(place: &SyncFixture, arguments: &[&str]) -> CommandOutput {
    let nobody = place.write("nobody.pem", "");
    warren_in(&place.at(""), &[("SSL_CERT_FILE", &nobody)], arguments)
}

#[test]
fn an_authority_of_ones_own_is_named_once() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let options = ["--tls-cert", &certificates.certificate, "--tls-key", &certificates.key];
    let server = ServeProcess::start(&place.data, &options);
    let file = place.chinook("a.db");
    track_all(&file);
    let run =
        |arguments: &[&str]| warren_trusting_nobody(&place, &[arguments, &["--json"]].concat());
    let sync = ["sync", &*file];
    let first_time = place.first_time(&server.address);
    let refused = run(&[&sync[..], &first_time].concat());
    refused.refused("untrusted");
    assert!(refused.value()["error"]["hint"].as_str().unwrap().contains("--ca-file FILE"));
    // The named file must exist, and must be a certificate.
    let with = |authority: &str| run(&[&sync[..], &first_time, &["--ca-file", authority]].concat());
    with(&place.at("missing.pem")).refused("file_not_found");
    with(&certificates.authority_key).refused("invalid_certificate");
    let synced = with(&certificates.authority).succeeded();
    assert_eq!(synced.value()["in_sync"], true);

    // From then on the file remembers it, wherever the authority's file is moved.
    fs::rename(&certificates.authority, place.at("elsewhere.pem")).unwrap();
    run(&sync).succeeded();
    assert_eq!(run(&["status", &file]).succeeded().value()["sync_status"]["in_sync"], true);
    run(&["device", "list", &file]).succeeded();
    let clone = ["clone", &place.at("b.db"), "--ca-file", &place.at("elsewhere.pem")];
    run(&[&clone[..], &first_time].concat()).succeeded();

    // From then on, another authority's certificate is refused, even if the machine trusts it.
    let others = TestCertificates::new(&place);
    others.issue("0x0B");
    while others.shown(&server) != "serial=0B" {}
    let everybody = [("SSL_CERT_FILE", &*others.authority)];
    let refused = warren_in(&place.at(""), &everybody, &["sync", &file, "--json"]);
    refused.refused("untrusted");
    run(&["sync", &file, "--ca-file", &others.authority]).succeeded();
    run(&sync).succeeded();
    server.stop();
}

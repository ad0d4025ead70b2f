//! The server speaks TLS by itself, with a certificate that may change while it runs.

use std::fs;
use std::process::{Command, Stdio};

use crate::processes::{Ran, Server, warren};
use crate::support::{Place, track_all};

/// An authority of one's own, and certificates for 127.0.0.1 that it has signed.
struct Certificates<'a> {
    place: &'a Place,
    authority: String,
    authority_key: String,
    /// Where the server looks.
    certificate: String,
    key: String,
}

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).stdin(Stdio::null()).output();
    Ran::new(output.unwrap()).succeeded().stdout
}

impl<'a> Certificates<'a> {
    fn new(place: &'a Place) -> Self {
        let (authority, authority_key) = (place.at("authority.pem"), place.at("authority-key.pem"));
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=an authority of one's own",
            "-keyout",
            &authority_key,
            "-out",
            &authority,
        ]);
        let (certificate, key) = (place.at("certificate.pem"), place.at("key.pem"));
        Self { place, authority, authority_key, certificate, key }
    }

    /// Puts a certificate with this serial number, and its key, in place.
    fn issue(&self, serial: &str) {
        let at = |name| self.place.at(name);
        let (request, extensions, new_key) = (at("request.pem"), at("san.txt"), at("new-key.pem"));
        fs::write(&extensions, "subjectAltName=IP:127.0.0.1\n").unwrap();
        openssl(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            "/CN=a small server",
            "-keyout",
            &new_key,
            "-out",
            &request,
        ]);
        let new = at("new.pem");
        openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &self.authority,
            "-CAkey",
            &self.authority_key,
            "-set_serial",
            serial,
            "-days",
            "1",
            "-extfile",
            &extensions,
            "-out",
            &new,
        ]);
        fs::rename(new_key, &self.key).unwrap();
        fs::rename(new, &self.certificate).unwrap();
    }

    /// The serial number of the certificate that the server shows.
    fn shown(&self, server: &Server) -> String {
        let address = server.address.strip_prefix("https://").unwrap();
        let shown = openssl(&["s_client", "-connect", address, "-CAfile", &self.authority]);
        let shown = self.place.write("shown.pem", &shown);
        openssl(&["x509", "-in", &shown, "-noout", "-serial"]).trim().to_owned()
    }
}

#[test]
fn a_device_syncs_over_tls_and_the_certificate_is_renewed_under_way() {
    let place = Place::new();
    let certificates = Certificates::new(&place);
    certificates.issue("0x0A");
    let options = ["--tls-cert", &certificates.certificate, "--tls-key", &certificates.key];
    let server = Server::start(&place.data, &options);
    assert_eq!(certificates.shown(&server), "serial=0A");

    let file = place.chinook("a.db");
    track_all(&file);
    let sync = |file: &str, authority: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warren"));
        command.args(["sync", file, "--json"]).args(place.first_time(&server.address));
        Ran::new(command.env("SSL_CERT_FILE", authority).output().unwrap())
    };
    // Whom the machine does not trust is not talked to.
    sync(&file, &place.write("nobody.pem", "")).refused("unreachable");
    assert_eq!(sync(&file, &certificates.authority).succeeded().value()["equal"], true);

    certificates.issue("0x0B");
    while certificates.shown(&server) != "serial=0B" {}
    // What cannot be used leaves what is in use.
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
    let place = Place::new();
    let certificates = Certificates::new(&place);
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
    for (certificate, key) in [
        (&place.at("missing.pem"), key),
        (&place.write("empty.pem", ""), key),
        (certificate, &place.at("missing.pem")),
        (certificate, &certificates.authority_key),
        (key, certificate),
    ] {
        serve(certificate, key).refused("invalid_certificate");
    }
}

//! Certificates for this machine, and the one that a server presents.

use std::fs;
use std::process::{Command, Stdio};

use crate::fixture::SyncFixture;
use crate::processes::{CommandOutput, ServeProcess};

/// A private authority, and certificates for 127.0.0.1 that it has signed.
pub(crate) struct TestCertificates<'a> {
    pub(crate) place: &'a SyncFixture,
    pub(crate) authority: String,
    pub(crate) authority_key: String,
    /// The certificate file that the server reads.
    pub(crate) certificate: String,
    pub(crate) key: String,
}

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).stdin(Stdio::null()).output();
    CommandOutput::new(output.unwrap()).succeeded().stdout
}

impl<'a> TestCertificates<'a> {
    pub(crate) fn new(place: &'a SyncFixture) -> Self {
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

    /// Installs a certificate with this serial number, and its key.
    pub(crate) fn issue(&self, serial: &str) {
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

    /// Returns the serial number of the certificate that the server presents.
    pub(crate) fn shown(&self, server: &ServeProcess) -> String {
        let address = server.host_and_port();
        let shown = openssl(&["s_client", "-connect", address, "-CAfile", &self.authority]);
        let shown = self.place.write("shown.pem", &shown);
        openssl(&["x509", "-in", &shown, "-noout", "-serial"]).trim().to_owned()
    }
}

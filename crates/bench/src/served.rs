//! A `warren serve` of our own: the shipped binary, on a free loopback port, with a fresh data
//! directory.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use protocol::{AccountRequest, AccountResponse, ClientRequest, ClientResponse};
use replica::Http;

/// A running server; it ends with this value.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    pub(crate) http: Http,
    /// For people's encoding, which no device of ours speaks.
    pub(crate) json: ureq::Agent,
}

impl Served {
    pub(crate) fn start(program: &Path, data: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--open-registration", "--json"])
            .args(["--log", "error", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let stdout = child.stdout.take().context("its standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line).context("its first line")?;
        let address = said["address"].as_str().context("its address")?.to_owned();
        let http = Http::new(&address);
        Ok(Self { child, address, http, json: ureq::Agent::new_with_defaults() })
    }

    /// A fresh account with one device; returns the device's token.
    pub(crate) fn account(&self, login: &str) -> anyhow::Result<String> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).context("random numbers")?;
        let password = format!("{:032x}", u128::from_be_bytes(secret));
        let request = AccountRequest { login: login.to_owned(), password: password.clone() };
        self.http.post::<AccountResponse>("/v1/accounts", None, &request)?;
        let request = ClientRequest { login: login.to_owned(), password, name: "bench".to_owned() };
        Ok(self.http.post::<ClientResponse>("/v1/clients", None, &request)?.token)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

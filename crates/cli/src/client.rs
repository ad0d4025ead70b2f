//! `warren client`: the devices of an account, seen from one of them or on the data directory.

use std::path::PathBuf;

use accounts::{ClientId, Login, Password, Unlocked};
use anyhow::Context;
use clap::{Args, Subcommand};
use protocol::{Client, ClientList};
use replica::{Error, Http, Replica};
use serde_json::json;

use crate::account::House;
use crate::clock::now_ms;
use crate::output::{Output, moment};
use crate::password::Source;

/// List and revoke the devices of an account.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(List),
    Revoke(Revoke),
}

/// List the devices of an account.
#[derive(Args)]
#[command(after_help = "Example:\n  warren client list a.db\n  \
                        warren client list --login ada --data ./data")]
pub(crate) struct List {
    #[command(flatten)]
    from: From,
}

/// Revoke a device: its token is dead at once, and so are those of copies that it enrolled.
#[derive(Args)]
#[command(after_help = "Example:\n  warren client revoke 0f3a5b7c9d1e2f40 a.db\n  \
                        warren client revoke 0f3a5b7c9d1e2f40 --login ada --data ./data")]
pub(crate) struct Revoke {
    /// The device, as `warren client list` shows it.
    client_id: String,
    #[command(flatten)]
    from: From,
}

/// Who asks: a synced file, by its token; or the operator, by login and password.
#[derive(Args)]
struct From {
    /// A file that syncs with the account.
    #[arg(required_unless_present = "login")]
    file: Option<PathBuf>,
    /// The account, on the data directory, with its password.
    #[arg(long, conflicts_with = "file")]
    login: Option<String>,
    /// The server's data directory.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    password: Source,
}

impl From {
    fn remote(&self) -> anyhow::Result<Option<(Http, String)>> {
        let Some(file) = &self.file else { return Ok(None) };
        let replica = Replica::open(file)?;
        let server = replica.server()?.ok_or(Error::NoServer)?;
        let token = replica.token()?.ok_or(Error::NoServer)?;
        Ok(Some((Http::new(&server), token)))
    }

    fn local(&self) -> anyhow::Result<(House, Unlocked)> {
        let login = Login::parse(self.login.as_deref().context("a file or --login")?)?;
        let password = Password::parse(self.password.read(&format!("Password for {login}: "))?)?;
        let house = House::open(&self.data)?;
        let unlocked = house.accounts.unlock(&login, &password, now_ms(), None)?;
        Ok((house, unlocked))
    }
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(&arguments, output),
        Command::Revoke(arguments) => revoke(&arguments, output),
    }
}

fn list(arguments: &List, output: Output) -> anyhow::Result<()> {
    let clients = match arguments.from.remote()? {
        Some((http, token)) => http.get::<ClientList>("/v1/clients", &token)?.clients,
        None => local_clients(&arguments.from)?,
    };
    for client in &clients {
        let here = if client.current { "  this device" } else { "" };
        let (id, name) = (&client.client_id, &client.name);
        let seen = moment(client.seen_ms);
        output.line(format_args!("{id}  {name:24} last seen {seen}{here}"));
    }
    output.value(&ClientList { clients })
}

fn local_clients(from: &From) -> anyhow::Result<Vec<Client>> {
    let (house, unlocked) = from.local()?;
    let clients = house.vaults.open(&unlocked)?.clients()?;
    let known = house.accounts.clients(unlocked.account)?;
    let clients = clients.into_iter().filter(|c| known.iter().any(|k| k.client_id == c.id));
    Ok(clients
        .map(|client| Client {
            client_id: client.id.as_str().to_owned(),
            name: client.name,
            cursor: client.cursor,
            seen_ms: client.seen_ms,
            created_ms: client.created_ms,
            current: false,
        })
        .collect())
}

fn revoke(arguments: &Revoke, output: Output) -> anyhow::Result<()> {
    let id = &arguments.client_id;
    if let Some((http, token)) = arguments.from.remote()? {
        http.delete(&format!("/v1/clients/{id}"), &token)?;
    } else {
        let id: ClientId = id.parse()?;
        let (house, unlocked) = arguments.from.local()?;
        let revoked = house.accounts.revoke(unlocked.account, &id)?;
        house.vaults.open(&unlocked)?.remove_clients(revoked).wait()?;
    }
    output.line(format_args!("revoked device {id}"));
    output.value(&json!({"client_id": id}))
}

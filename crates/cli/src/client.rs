//! `warren client`: the devices of an account, seen from one of them or on the data directory.

use accounts::ClientId;
use clap::{Args, Subcommand};
use protocol::{Client, ClientList};
use replica::{Error, Http, Replica};
use serde_json::json;

use crate::account::Subject;
use crate::output::{Output, moment};

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
    subject: Subject,
}

/// Revoke a device: its token is dead at once, and so are those of copies that it enrolled.
#[derive(Args)]
#[command(after_help = "Example:\n  warren client revoke 0f3a5b7c9d1e2f40 a.db\n  \
                        warren client revoke 0f3a5b7c9d1e2f40 --login ada --data ./data")]
pub(crate) struct Revoke {
    /// The device, as `warren client list` shows it.
    client_id: String,
    #[command(flatten)]
    subject: Subject,
}

/// The file's server and token, if it is a file that asks.
fn remote(subject: &Subject) -> anyhow::Result<Option<(Http, String)>> {
    let Some(file) = &subject.file else { return Ok(None) };
    let replica = Replica::open(file)?;
    let server = replica.server()?.ok_or(Error::NoServer)?;
    let token = replica.token()?.ok_or(Error::NoServer)?;
    Ok(Some((Http::new(&server), token)))
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(&arguments, output),
        Command::Revoke(arguments) => revoke(&arguments, output),
    }
}

fn list(arguments: &List, output: Output) -> anyhow::Result<()> {
    let clients = match remote(&arguments.subject)? {
        Some((http, token)) => http.get::<ClientList>("/v1/clients", &token)?.clients,
        None => local_clients(&arguments.subject)?,
    };
    for client in &clients {
        let here = if client.current { "  this device" } else { "" };
        let (id, name) = (&client.client_id, &client.name);
        let seen = moment(client.seen_ms);
        output.line(format_args!("{id}  {name:24} last seen {seen}{here}"));
    }
    output.value(&ClientList { clients })
}

fn local_clients(subject: &Subject) -> anyhow::Result<Vec<Client>> {
    let (house, unlocked) = subject.unlock()?;
    let clients = house.wait(house.vaults.open(&unlocked)?.clients())?;
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
    if let Some((http, token)) = remote(&arguments.subject)? {
        http.delete(&format!("/v1/clients/{id}"), &token)?;
    } else {
        let id: ClientId = id.parse()?;
        let (house, unlocked) = arguments.subject.unlock()?;
        let revoked = house.accounts.revoke(unlocked.account, &id)?;
        house.wait(house.vaults.open(&unlocked)?.remove_clients(revoked))?;
    }
    output.line(format_args!("revoked device {id}"));
    output.value(&json!({"client_id": id}))
}

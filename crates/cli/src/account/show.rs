//! `warren account show`: one account, from outside and, with its password, from inside.

use std::path::Path;

use accounts::{AccountSummary, Login, Password, VaultId};
use clap::Args;
use serde_json::{Value, json};
use sync_store::Vaults;

use super::{House, Place, limit};
use crate::client;
use crate::clock::now_ms;
use crate::output::span::{ago, grouped};
use crate::output::{Output, moment};
use crate::password::Source;

/// Show an account: limits, devices, size; with its password also what its vault holds.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account show ada\n  \
                        warren account show ada --open\n  \
                        warren account show ada --password-file secret.txt --json")]
pub(crate) struct Arguments {
    login: String,
    /// Open the vault too; the password is asked for.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    password: Source,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let house = House::open(&arguments.place)?;
    let account = house.accounts.find(&login)?;
    let file_bytes = match &house.vaults {
        Vaults::Files(_) => file_bytes(&account.vault, &arguments.place.data.data)?,
        Vaults::Postgres(_) => None,
    };
    let children_count = house.accounts.children(account.account)?.len();
    describe(&account, file_bytes, output);
    if children_count > 0 {
        output.line(format_args!("{children_count} further vaults belong to it"));
    }
    let mut value = json!({
        "login": login.as_str(),
        "vault": account.vault.as_str(),
        "created_ms": account.created_ms,
        "devices": account.clients_count,
        "file_bytes": file_bytes,
        "children": children_count,
        "limits": limit::to_json(account.limits),
    });
    if arguments.open || arguments.password.password_file.is_some() {
        value["open"] = inside(&house, &login, arguments, output)?;
    }
    output.value(&value)
}

/// The vault's file with its WAL; none before the first device is there, and none in PostgreSQL.
fn file_bytes(vault: &VaultId, data: &Path) -> anyhow::Result<Option<u64>> {
    let path = vault.path(data);
    let size = |path: &Path| match std::fs::metadata(path) {
        Ok(file) => Ok(Some(file.len())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let wal = path.with_extension("sqlite-wal");
    let Some(bytes) = size(&path)? else { return Ok(None) };
    Ok(Some(bytes + size(&wal)?.unwrap_or(0)))
}

fn describe(account: &AccountSummary, file_bytes: Option<u64>, output: Output) {
    let (login, vault) = (&account.login, &account.vault);
    output.line(format_args!("{login}, made {}, vault {vault}", moment(account.created_ms)));
    output.line(format_args!("{}", limit::describe(account.limits)));
    let devices = account.clients_count;
    match file_bytes {
        Some(bytes) => {
            output.line(format_args!("{devices} devices; the file has {} bytes", grouped(bytes)));
        }
        None => output.line(format_args!("{devices} devices; no file")),
    }
}

/// What only the password opens.
fn inside(
    house: &House,
    login: &Login,
    arguments: &Arguments,
    output: Output,
) -> anyhow::Result<Value> {
    let password = arguments.password.read(&format!("Password for {login}: "))?;
    let unlocked = house.accounts.unlock(login, &Password::parse(password)?)?;
    let vault = house.vaults.open(&unlocked)?;
    let state = house.wait(vault.state())?;
    let clients = client::of_vault(house, &unlocked)?;
    let (messages, bytes) = (grouped(state.fingerprint.count), grouped(state.bytes));
    output.line(format_args!("{messages} messages, {bytes} bytes, cursor {}", state.cursor));
    let now_ms = now_ms();
    for client in &clients.clients {
        let seen = ago(client.seen_ms, now_ms);
        let (id, name) = (&client.client_id, &client.name);
        let (unsent, behind) = (grouped(client.unsent), grouped(client.behind));
        output
            .line(format_args!("{id}  {name:24} seen {seen}, {unsent} unsent, {behind} to fetch"));
    }
    Ok(json!({
        "messages": state.fingerprint.count,
        "bytes": state.bytes,
        "cursor": state.cursor,
        "clients": clients.clients,
    }))
}

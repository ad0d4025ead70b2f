//! A test that damages and repairs a vault while apps have all of its messages.

use std::fs;
use std::process::Command;

use crate::actual_server::ActualServer;
use crate::budget_client::{BudgetClient, BudgetLibrary};
use crate::spoil::{damaged, spoil_middle, vaults};

const WARREN: &str = env!("CARGO_BIN_EXE_warren");
const PASSWORD: &str = "correct horse";
/// The number of transactions, with ten messages each: more than the budget's file, which is in
/// the same vault.
const COUNT: u64 = 1_000;

fn inspect(target: &ActualServer, options: &[&str]) -> String {
    let data = target.data();
    let password = data.with_file_name("password.txt");
    fs::write(&password, PASSWORD).unwrap();
    let mut command = Command::new(WARREN);
    command.args(["inspect", "--login", "actual", "--data"]).arg(data);
    command.arg("--password-file").arg(password).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn apps_send_again_what_a_damaged_vault_has_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = ActualServer::warren();
    let address = target.address().to_owned();
    let sign_in = |name| {
        BudgetClient::sign_in(BudgetLibrary::Api, &address, PASSWORD, &folder.path().join(name))
    };
    let mut ada = sign_in("ada");
    let place = ada.create("Home");
    ada.account("Bank");
    ada.import("Bank", 0, COUNT);
    ada.sync();
    target.kill();
    // This moves the WAL into the file.
    inspect(&target, &[]);
    let vault = vaults(&target.data()).remove(0);
    spoil_middle(&vault);
    let said = inspect(&target, &["--repair"]);
    assert!(said.contains("was damaged"), "{said}");
    assert!(damaged(&vault).exists());
    target.restart();
    let mut without = sign_in("without");
    without.open(&place, None);
    assert!(without.state().len() < ada.state().len(), "something was lost");
    ada.sync();
    let mut ben = sign_in("ben");
    ben.open(&place, None);
    let state = ben.state();
    state.check_equal(&ada.state());
    assert_eq!(state.imported("Bank"), (0..COUNT).collect::<Vec<_>>());
    without.sync();
    without.state().check_equal(&state);
}

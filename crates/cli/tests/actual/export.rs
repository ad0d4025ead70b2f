//! Tests of `warren actual-budget export`: another server's app gets the whole budget from the
//! archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::actual_server::ActualServer;
use crate::budget_client::{BudgetLocation, BudgetSnapshot};
use crate::operator::OperatorFixture;

const KEY: &str = "battery staple";

/// Returns the contents that a new app of another server has after "Import file", and checks a
/// second copy of it.
#[track_caller]
fn imported(operator: &OperatorFixture, archive: &Path) -> BudgetSnapshot {
    let published = ActualServer::published();
    let name = archive.file_name().unwrap().to_str().unwrap();
    let mut ben = operator.client(&published, &format!("ben {name}"));
    let place: BudgetLocation = ben.get(&json!({"do": "import-file", "path": archive}));
    let state = ben.state();
    // The budget works as any other does: its clock and its trie are right.
    ben.import("Bank", 1_000, 3);
    ben.sync();
    let mut eve = operator.client(&published, &format!("eve {name}"));
    eve.open(&place, None);
    eve.edit("Bank 1000", &json!({"notes": "from Eve"}));
    eve.sync();
    ben.sync();
    ben.state().check_equal(&eve.state());
    assert_eq!(ben.state().len(), state.len() + 3);
    state
}

#[test]
fn what_is_exported_an_app_of_another_server_imports() {
    let operator = OperatorFixture::new();
    let mut ada = operator.client(&operator.warren, "ada");
    ada.create("Home");
    ada.account("Bank");
    ada.import("Bank", 0, 120);
    ada.edit("Bank 7", &json!({"amount": 4_200, "notes": "by hand ☂"}));
    ada.run(&json!({"do": "rename", "name": "Zuhause / Büro"}));
    ada.sync();
    let to = operator.at("out");
    let export = ["export", "--output", to.to_str().unwrap()];
    let exported = operator.json(&export);
    let path = to.join("Zuhause _ Büro.zip");
    assert_eq!(exported[0]["path"], path.to_str().unwrap());
    assert_eq!(exported[0]["name"], "Zuhause / Büro");
    assert!(exported[0]["applied_messages_count"].as_u64().unwrap() > 1_000, "{exported}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (_, message) = operator.refused(&export);
    assert!(message.contains("exists"), "{message}");

    let state = imported(&operator, &path);
    state.check_equal(&ada.state());
    assert_eq!(state.find("Bank 7").amount, 4_200);
}

#[test]
fn an_encrypted_budget_is_exported_with_its_password_alone() {
    let operator = OperatorFixture::new();
    let mut ada = operator.client(&operator.warren, "ada");
    ada.create("Secret");
    ada.account("Bank");
    ada.import("Bank", 0, 20);
    ada.encrypt(KEY);
    ada.import("Bank", 20, 20);
    ada.sync();
    let (to, key) = (operator.at("out"), operator.at("key.txt"));
    let [to_text, key_text] = [&to, &key].map(|path| path.to_str().unwrap());
    let export = ["export", "Secret", "--output", to_text];
    let (code, message) = operator.refused(&export);
    assert_eq!(code, "password_required");
    assert!(message.contains("Secret") && message.contains("--budget-password-file"), "{message}");
    let with_key = [&export[..], &["--budget-password-file", key_text]].concat();
    fs::write(&key, "wrong\n").unwrap();
    let (code, _) = operator.refused(&with_key);
    assert_eq!((&*code, fs::read_dir(&to).unwrap().count()), ("wrong_password", 0));

    fs::write(&key, KEY).unwrap();
    operator.json(&with_key);
    imported(&operator, &to.join("Secret.zip")).check_equal(&ada.state());
}

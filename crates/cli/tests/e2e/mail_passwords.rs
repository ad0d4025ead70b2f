//! Tests the passwords of mail programs: they open the account's mail and nothing else.

use serde_json::{Value, json};

use crate::mail_delivery::with_address;
use crate::processes::{CommandOutput, warren};

#[test]
fn a_mail_password_opens_the_mail_until_it_is_removed_and_nothing_else() {
    let mail = with_address();
    let data = &mail.0.data;
    let mbox = mail.mbox("a.mbox", 3);
    mail.run(&["import", "mbox", &mbox]);
    let added = mail.run(&["password", "add", "--name", "Ada's phone"]);
    let text = added["password"].as_str().unwrap();
    let id = added["password_id"].as_str().unwrap();
    let other = mail.run(&["password", "add"]);
    let listed = mail.run(&["password", "list"]);
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, [&json!("Ada's phone"), &json!("")]);

    // As people type it.
    let file = mail.0.write("phone", &text.replace('-', " ").to_uppercase());
    let with_phone = |command: &[&str]| -> CommandOutput {
        let login = ["--login", "ada", "--data", data, "--password-file", &file, "--json"];
        warren(&[command, &login[..]].concat())
    };
    assert_eq!(with_phone(&["mail", "list"]).succeeded().value().as_array().unwrap().len(), 3);
    assert_eq!(with_phone(&["mail", "password", "list"]).succeeded().value(), listed);
    for command in [&["mail", "password", "add"][..], &["device", "list"], &["inspect"]] {
        with_phone(command).refused("wrong_password");
    }
    let files = ["--data", data, "--password-file", &file, "--json"];
    let show = ["account", "show", "ada", "--with-vault"];
    warren(&[&show[..], &files].concat()).refused("wrong_password");

    let remove = |id: &str| {
        warren(&["mail", "password", "remove", id, "--login", "ada", "--data", data, "--json"])
    };
    remove(id).succeeded();
    remove(id).refused("not_found");
    remove("nonsense").refused("not_found");
    with_phone(&["mail", "list"]).refused("wrong_password");
    let left = mail.run(&["password", "list"]);
    assert_eq!(left[0]["password_id"], other["password_id"]);
    assert_eq!(left.as_array().unwrap().len(), 1);
}

#[test]
fn a_restored_data_directory_does_not_bring_back_a_removed_mail_password() {
    let mail = with_address();
    let added = mail.run(&["password", "add"]);
    let file = mail.0.write("phone", added["password"].as_str().unwrap());
    let (backup, restored) = (mail.0.at("backup"), mail.0.at("restored"));
    warren(&["backup", &backup, "--data", &mail.0.data]).succeeded();
    let id = added["password_id"].as_str().unwrap();
    warren(&["mail", "password", "remove", id, "--login", "ada", "--data", &mail.0.data])
        .succeeded();
    let revocations = format!("{}/revocations", mail.0.data);
    let restore = ["restore", &backup, "--data", &restored, "--revocations", &revocations];
    warren(&restore).succeeded();
    let list = ["mail", "list", "--login", "ada", "--data", &restored, "--json"];
    warren(&[&list[..], &["--password-file", &file]].concat()).refused("wrong_password");
    warren(&[&list[..], &["--password-file", &mail.0.password]].concat()).succeeded();
}

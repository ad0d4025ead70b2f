//! The guide to Actual Budget, tried with the data of a published server.

#[path = "../e2e/guide/code_block.rs"]
mod code_block;
#[path = "../e2e/guide/transcript.rs"]
mod transcript;
#[path = "../e2e/guide/walkthrough.rs"]
#[expect(dead_code, reason = "this guide has no measurements")]
mod walkthrough;

use std::fs;
use std::process::Command;

use rusqlite::Connection;

use self::walkthrough::Walkthrough;
use crate::import::published_server::{FRESH, PASSWORD, used};

/// The web app's files, with an empty budget among them.
const WEB_APP: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/node_modules/@actual-app/web");

/// Makes an archive of the empty budget, as an app uploads it.
const UPLOAD: &str = "
import sys, zipfile
database, archive = sys.argv[1:]
with zipfile.ZipFile(archive, 'w') as file:
    file.write(database, 'db.sqlite')
    file.writestr('metadata.json', '{\"id\": \"Home\", \"budgetName\": \"Home\"}')
";

const PAGE: &str = include_str!("../../../../docs/guide/actual-budget.md");

/// The page from one heading to another.
fn part(from: &str, to: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(from).unwrap();
    rest.split_once(to).unwrap().0
}

#[test]
fn a_new_server_serves_the_apps() {
    let npm = format!(
        "npm() {{ tar czf actual-app-web-26.9.0.tgz --transform 's,^,package/,' -C {WEB_APP} build; }}\n"
    );
    let page = part("## Start with a new server", "## Switch from");
    Walkthrough::new(PASSWORD).run(&npm, page);
}

#[test]
fn a_published_server_is_imported_and_its_budgets_are_managed() {
    let (mut published, _) = used();
    published.kill();
    let place = Walkthrough::new(PASSWORD).replace("Home", FRESH);
    let old = place.at("/path/to/actual-data");
    for folder in ["server-files", "user-files"] {
        fs::create_dir_all(old.join(folder)).unwrap();
        for entry in fs::read_dir(published.data().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, old.join(folder).join(path.file_name().unwrap())).unwrap();
        }
    }
    // Of the budgets in there, one has no changes. Here an app uploaded it, and deleted it.
    let database = format!("{WEB_APP}/build/data/default-db.sqlite");
    let archive = old.join(format!("user-files/file-{FRESH}.blob"));
    let mut upload = Command::new("python3");
    upload.args(["-c", UPLOAD, &database]).arg(archive);
    assert!(upload.status().unwrap().success());
    let accounts = Connection::open(old.join("server-files/account.sqlite")).unwrap();
    accounts.execute("UPDATE files SET deleted = 1 WHERE id = ?1", [FRESH]).unwrap();
    drop(accounts);
    place.run("", part("## Switch from", "## Go back to"));
}

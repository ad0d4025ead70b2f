//! Tests what a thief of the server's disk finds: no word of its users' data, and no key to it.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::cutting_proxy::{CutAction, CuttingProxy, ProxyEvent};
use crate::fixture::{PASSWORD, SyncFixture, files_below, sync, token, track_all};
use crate::hex::hex;
use crate::processes::{json, shell, sql, start, warren};
use crate::random::SplitMixRng;

const DEVICE: &str = "Ada's secret machine";
/// Contents of Chinook: an album, an e-mail address, a street, a table's and a column's name, a
/// declaration.
const KNOWN: &[&str] = &[
    "For Those About To Rock",
    "luisg@embraer.com.br",
    "Brigadeiro Faria Lima",
    "PlaylistTrack",
    "UnitPrice",
    "CREATE TABLE [Invoice]",
    "written while the server died",
];

/// Returns the names of the files that contain a needle in their raw bytes, with the needle.
fn finds(files: &[PathBuf], needles: &[Vec<u8>]) -> Vec<(String, String)> {
    let needles: Vec<String> = needles.iter().map(|needle| latin(needle)).collect();
    let mut found = Vec::new();
    for file in files {
        // A journal may disappear between the listing and the read.
        let Ok(bytes) = fs::read(file) else { continue };
        let text = latin(&bytes);
        let name = file.file_name().unwrap().to_string_lossy();
        let held = needles.iter().filter(|needle| text.contains(*needle));
        found.extend(held.map(|needle| (name.clone().into_owned(), needle.clone())));
    }
    found
}

/// Converts bytes to characters of the same numbers: the standard library has a fast search for
/// `str`, but not for slices.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns a secret in the forms in which a program might have written it.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex = hex(secret);
    let upper = hex.to_uppercase();
    let base64 = STANDARD.encode(secret);
    vec![secret.to_vec(), hex.into(), upper.into(), base64.into()]
}

fn check_nothing_in(place: &SyncFixture, needles: &[Vec<u8>], when: &str) {
    let files = files_below(Path::new(&place.data));
    assert!(files.len() >= 2, "the accounts and a vault: {files:?}, {when}");
    assert_eq!(finds(&files, needles), [], "{when}");
}

/// Uses two devices, edits, another password and a revoked device: everything that makes the
/// server write.
fn session(place: &SyncFixture, a: &str, address: &str) -> Vec<Vec<u8>> {
    track_all(a);
    json(&[&["sync", a, "--device-name", DEVICE], &place.first_time(address)[..]].concat());
    let b = place.at("b.db");
    place.sign_in("clone", &b, address);
    let secrets = [token(a), token(&b)];
    sql(a, "UPDATE Track SET Composer = 'a new composer' WHERE TrackId < 2000");
    sync(a);
    sync(&b);
    let id = json(&["status", &b])["remote"]["device_id"].as_str().unwrap().to_owned();
    json(&["device", "revoke", &id, a]);
    let new = place.write("new.txt", "another pass-phrase of ada's");
    place.operator(&["account", "password", "ada", "--new-password-file", &new]);
    fs::copy(&new, &place.password).unwrap();

    let mut needles = texts(KNOWN);
    needles.extend(texts(&["a new composer", DEVICE, PASSWORD, "another pass-phrase of ada's"]));
    for secret in secrets {
        let bytes = URL_SAFE_NO_PAD.decode(secret.strip_prefix("warren_").unwrap()).unwrap();
        needles.push(secret.into());
        needles.extend(forms(&bytes));
    }
    needles
}

/// Syncs a change, and kills the server at a random byte of it.
fn kill_while_syncing(
    place: &SyncFixture,
    a: &str,
    proxy: &CuttingProxy,
    random: &mut SplitMixRng,
) {
    let server = place.serve();
    proxy.turn_to(&server.address);
    sql(a, "UPDATE Track SET Composer = 'written while the server died ' || random()");
    let mut process = start(&["sync", a, "--json"]);
    let watch = proxy.watch(20_000 + random.below(150_000), CutAction::Flow, &mut process);
    assert!(matches!(watch.next(), ProxyEvent::Passed), "seed {}", random.seed);
    random.spin(100_000);
    server.kill();
    drop(watch);
    process.wait().unwrap();
}

#[test]
fn no_file_of_the_server_holds_a_word_or_a_key_of_its_users() {
    let mut random = SplitMixRng::new();
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = CuttingProxy::to(&server.address);
    let a = place.chinook("a.db");
    let mut needles = session(&place, &a, &proxy.address);
    needles.extend(forms(place.unlock("another pass-phrase of ada's").key.as_bytes()));

    let wals = files_below(Path::new(&place.data));
    let is_wal = |file: &&PathBuf| file.to_str().unwrap().ends_with("-wal");
    assert!(wals.iter().any(|f| is_wal(&f) && f.metadata().unwrap().len() > 0), "{wals:?}");
    check_nothing_in(&place, &needles, "the server runs");
    server.kill();
    check_nothing_in(&place, &needles, "the server was killed");
    for round in 0..10 {
        kill_while_syncing(&place, &a, &proxy, &mut random);
        let when = format!("killed while syncing, round {round}, seed {}", random.seed);
        check_nothing_in(&place, &needles, &when);
    }
    let server = place.serve();
    proxy.turn_to(&server.address);
    sync(&a);
    server.stop();
    check_nothing_in(&place, &needles, "the server was stopped");

    // The search does find contents: in the device's file, which is plain.
    let found = finds(&[PathBuf::from(&a)], &needles);
    for known in KNOWN.iter().chain(&["a new composer", DEVICE, &token(&a)]) {
        // An index or a free page may have it too; one match is enough.
        assert!(found.iter().any(|(_, needle)| needle == known), "{known} in {found:?}");
    }
    let secret = |needle: &str| found.iter().any(|(_, found)| found == needle);
    assert!(!secret(PASSWORD), "the device's file does not hold the password");
    assert_eq!(finds(&[PathBuf::from(&place.password)], &needles).len(), 1, "the password's file");
}

#[test]
fn the_data_directory_alone_opens_no_vault() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.chinook("a.db");
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    server.stop();
    let vaults = files_below(&Path::new(&place.data).join("vaults"));
    assert!(!vaults.is_empty());
    for vault in &vaults {
        let opened = shell(vault.to_str().unwrap(), "SELECT count(*) FROM sqlite_schema");
        assert!(!opened.status.success(), "{}: {}", vault.display(), opened.stdout);
        assert!(opened.stderr.contains("not a database"), "{}", opened.stderr);
    }
    let wrong = place.write("wrong.txt", "a pass-phrase of eve's");
    for command in [&["inspect"][..], &["device", "list"]] {
        let on_data =
            ["--login", "ada", "--data", &place.data, "--json", "--password-file", &wrong];
        warren(&[command, &on_data].concat()).refused("wrong_password");
    }
    place.check_vault(15_618);
}

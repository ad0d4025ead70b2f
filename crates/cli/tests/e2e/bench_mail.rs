//! Tests `warren bench mail` with a small workload, against the Dovecot of this machine.

use serde_json::Value;

use crate::bench::{bench, check_rows, folder, names};
use crate::processes::{warren, warren_in};

const SYSTEMS: [&str; 3] = ["Warren", "Dovecot, sdbox", "Dovecot, sdbox and mail_crypt"];

#[test]
fn delivery_measures_each_system_at_each_number_of_connections() {
    let folder = folder();
    let small = ["--mailboxes", "4", "--seconds", "0.2", "--rounds", "1", "--connections", "1,3"];
    let more = ["--only", "delivery", "--against", "dovecot,dovecot-mail-crypt"];
    let report = bench("mail", folder.path(), &[&small[..], &more].concat());
    assert_eq!(names(&report), ["delivery-1", "delivery-3"].into());
    let metrics = ["failures", "CPU µs each", "generator CPU, cores", "kB on the disk each"];
    check_rows(&report, 1, &metrics, true);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap().iter();
        assert_eq!(rows.map(|row| &row["name"]).collect::<Vec<_>>(), SYSTEMS, "{table}");
    }
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notes.iter().any(|note| note.starts_with("Dovecot 2.3.")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.starts_with("failed")), "{notes:?}");
}

#[test]
fn a_competitor_that_is_unknown_or_not_installed_is_refused() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let run = ["bench", "mail", "--json", "--work-dir", path, "--report-dir", path, "--against"];
    warren(&[&run[..], &["cyrus"]].concat()).refused("invalid_argument");
    let variables = [("PATH", path)];
    let run = [&run[..], &["dovecot"]].concat();
    warren_in(path, &variables, &run).refused("not_installed");
    assert!(std::fs::read_dir(path).unwrap().next().is_none(), "nothing was begun");
}

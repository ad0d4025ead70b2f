//! Tests `warren bench mail` with a small workload, against the Dovecot of this machine.

use std::process::Command;

use serde_json::Value;

use crate::bench::{bench, check_rows, folder, names};
use crate::processes::{warren, warren_in};

const SYSTEMS: [&str; 3] = ["Warren", "Dovecot, sdbox", "Dovecot, sdbox and mail_crypt"];

/// The version of Dovecot that the benchmark has settings for. Newer distributions have another.
const DOVECOT_VERSION: &str = "2.3.";

/// Each case needs time for a few messages, however busy the machine is.
const SMALL: [&str; 10] = [
    "--mailboxes",
    "4",
    "--seconds",
    "1",
    "--rounds",
    "1",
    "--connections",
    "1,3",
    "--only",
    "delivery",
];

fn has_measured_dovecot() -> bool {
    let version = Command::new("/usr/sbin/dovecot").arg("--version").output();
    let version = version.expect("`make test` installs dovecot-lmtpd").stdout;
    version.starts_with(DOVECOT_VERSION.as_bytes())
}

#[test]
fn delivery_measures_each_system_at_each_number_of_connections() {
    let folder = folder();
    let against = ["--against", "dovecot,dovecot-mail-crypt"];
    let (systems, more) = if has_measured_dovecot() {
        (&SYSTEMS[..], &against[..])
    } else {
        (&SYSTEMS[..1], &[][..])
    };
    let report = bench("mail", folder.path(), &[&SMALL[..], more].concat());
    assert_eq!(names(&report), ["delivery-1", "delivery-3"].into());
    let metrics = ["failures", "CPU µs each", "generator CPU, cores", "kB on the disk each"];
    check_rows(&report, 1, &metrics, true);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap().iter();
        assert_eq!(rows.map(|row| &row["name"]).collect::<Vec<_>>(), systems, "{table}");
    }
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let is_dovecots = |note: &&str| note.starts_with(&format!("Dovecot {DOVECOT_VERSION}"));
    assert_eq!(notes.iter().any(is_dovecots), has_measured_dovecot(), "{notes:?}");
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

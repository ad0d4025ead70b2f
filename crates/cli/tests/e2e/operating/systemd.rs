//! Tests `docs/operating/proxies.md`: the systemd service, and the settings file that it starts
//! with.

use std::fs;

use serde_json::Value;

use super::{PROXIES_PAGE, code_block, command_of_page, program, replaced};
use crate::processes::{CommandOutput, json};

/// The limit of systemd's exposure score for the service. The score goes to 100 and differs a
/// little between systemd's versions.
const EXPOSURE_MAX: &str = "40";

/// Runs `systemd-analyze …` on the page's unit, with the binary of this test.
fn analyze(arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("warren.service");
    let binary = [("/usr/local/bin/warren", env!("CARGO_BIN_EXE_warren"))];
    fs::write(&unit, replaced(code_block(PROXIES_PAGE, "## systemd"), &binary)).unwrap();
    let mut command = program("/usr/bin/systemd-analyze");
    CommandOutput::new(command.args(arguments).arg(unit).output().unwrap()).succeeded()
}

#[test]
fn systemd_has_nothing_to_say_about_the_unit() {
    let verified = analyze(&["verify", "--man=no"]);
    // The command also reads the machine's own units.
    let mut lines = verified.stderr.lines();
    assert_eq!(lines.find(|line| line.contains("warren")), None);
}

#[test]
fn the_unit_reaches_little_of_the_system() {
    analyze(&["security", "--offline=yes", "--threshold", EXPOSURE_MAX]);
}

#[test]
fn the_unit_s_settings_are_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("warren.toml");
    fs::write(&file, code_block(PROXIES_PAGE, "# /etc/warren/warren.toml")).unwrap();
    let print = |arguments: &[&str]| json(&[arguments, &["--print-config"]].concat());
    let of_file = print(&["serve", "--config", file.to_str().unwrap()]);
    let of_command = print(&command_of_page());
    let value = |printed: &Value, name: &str| printed["settings"][name]["value"].clone();
    for name in ["listen", "allow-host", "trusted-proxy"] {
        assert_eq!(value(&of_file, name), value(&of_command, name), "{name}");
    }
    assert_eq!(value(&of_file, "data"), "/var/lib/warren");
}

//! Tests of the settings of `warren serve`: from the command line, the environment and a TOML
//! file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::processes::{CommandOutput, ServeProcess, json, start, start_with, warren, warren_in};

const SECRET: &str = "postgres://warren:correct-horse@db.example/warren";

/// A folder of its own, with settings files in `etc`.
struct SettingsFixture {
    folder: TempDir,
}

impl SettingsFixture {
    fn new() -> Self {
        let etc = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(etc.at("etc")).unwrap();
        etc
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a settings file, and returns its path.
    fn write(&self, text: &str) -> String {
        let path = self.at("etc/warren.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs `warren serve --print-config …` with this text in the file.
    fn print(&self, text: &str, variables: &[(&str, &str)], options: &[&str]) -> CommandOutput {
        let config = self.write(text);
        let print = ["serve", "--print-config", "--config", &config];
        warren_in(&self.at(""), variables, &[&print, options].concat())
    }

    /// Returns all settings that it prints with `--json`.
    #[track_caller]
    fn settings(&self, text: &str, variables: &[(&str, &str)], options: &[&str]) -> Value {
        let ran = self.print(text, variables, &[options, &["--json"]].concat()).succeeded();
        ran.value()["settings"].take()
    }

    /// Checks that the file is refused, and that the message contains the line and this text.
    #[track_caller]
    fn check_refused(&self, text: &str, line: usize, told: &str) {
        let ran = self.print(text, &[], &["--json"]);
        ran.refused("invalid_settings");
        let message = ran.value()["error"]["message"].as_str().unwrap().to_owned();
        let place = format!("etc/warren.toml:{line}: ");
        assert!(message.contains(&place), "{message}");
        assert!(message.contains(told), "{told} in {message}");
    }
}

/// Checks a setting's value and source.
#[track_caller]
fn check(setting: &Value, value: impl Into<Value>, source: &str) {
    let expected: Value = value.into();
    assert_eq!((&setting["value"], &setting["source"]), (&expected, &json!(source)), "{setting}");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let etc = SettingsFixture::new();
    let file = "request-messages-max = 1\nrequest-body-bytes-max = 1_000\nrequest-timeout-seconds = 0x10\n\
                open-registration = true\n";
    let variables =
        [("WARREN_REQUEST_MESSAGES_MAX", "2"), ("WARREN_REQUEST_BODY_BYTES_MAX", "2000")];
    let settings = etc.settings(file, &variables, &["--request-messages-max", "3"]);
    check(&settings["request-messages-max"], 3, "command_line");
    check(&settings["request-body-bytes-max"], 2000, "environment");
    check(&settings["request-timeout-seconds"], 16, "file");
    check(&settings["open-registration"], true, "file");
    check(&settings["listen"], "127.0.0.1:4600", "default");
    assert!(
        settings["request-timeout-seconds"]["location"]
            .as_str()
            .unwrap()
            .ends_with("warren.toml:3")
    );
    assert_eq!(settings["request-body-bytes-max"]["location"], "WARREN_REQUEST_BODY_BYTES_MAX");

    let off = etc.settings(file, &[("WARREN_OPEN_REGISTRATION", "no")], &[]);
    check(&off["open-registration"], false, "environment");
    let off = etc.settings(file, &[], &["--open-registration=false"]);
    check(&off["open-registration"], false, "command_line");
    let on = etc.settings("", &[], &["--open-registration"]);
    check(&on["open-registration"], true, "command_line");
    let unset = etc.settings(file, &[("WARREN_REQUEST_MESSAGES_MAX", "")], &[]);
    check(&unset["request-messages-max"], 1, "file");

    let config = etc.write("request-messages-max = 7\n");
    let named = [("WARREN_CONFIG", config.as_str())];
    let ran = warren_in(&etc.at(""), &named, &["serve", "--print-config", "--json"]).succeeded();
    check(&ran.value()["settings"]["request-messages-max"], 7, "file");
}

#[test]
fn a_list_is_taken_whole_from_where_it_stands_highest() {
    let etc = SettingsFixture::new();
    let file = "allow-origin = [\"https://a.example\", \"https://b.example\"]\n";
    let from_file = etc.settings(file, &[], &[]);
    let both = json!(["https://a.example", "https://b.example"]);
    check(&from_file["allow-origin"], both, "file");
    let variable = [("WARREN_ALLOW_ORIGIN", "https://c.example,https://d.example")];
    let from_variable = etc.settings(file, &variable, &[]);
    let both = json!(["https://c.example", "https://d.example"]);
    check(&from_variable["allow-origin"], both, "environment");
    let option = etc.settings(file, &variable, &["--allow-origin", "https://e.example"]);
    check(&option["allow-origin"], json!(["https://e.example"]), "command_line");
}

#[test]
fn a_server_is_what_its_file_says_and_relative_paths_are_beside_it() {
    let etc = SettingsFixture::new();
    fs::write(etc.at("etc/token.txt"), "the-operators-token\n").unwrap();
    let config = etc.write(
        "listen = \"127.0.0.1:0\"\ndata = \"state/warren\"\nlog = \"error\"\n\
         admin-token-file = \"token.txt\"\n\
         allow-origin = [\"https://a.example\", \"https://b.example\"]\n",
    );
    let server = ServeProcess::new(start(&["serve", "--json", "--config", &config]));
    assert!(fs::exists(etc.at("etc/state/warren/accounts.sqlite")).unwrap());
    let overview = server.admin("overview", "the-operators-token", None);
    assert!(overview.is_object(), "{overview}");
    for origin in ["https://a.example", "https://b.example"] {
        let url = format!("{}/v1/openapi.json", server.address);
        let answer = ureq::get(url).header("origin", origin).call().unwrap();
        assert_eq!(answer.headers()["access-control-allow-origin"], origin);
    }
}

#[test]
fn a_name_or_a_value_that_is_wrong_is_refused_with_its_line() {
    let etc = SettingsFixture::new();
    etc.check_refused("data = \"d\"\n\nlistn = \"127.0.0.1:0\"\n", 3, "did you mean `listen`?");
    etc.check_refused("open_registration = true", 1, "did you mean `open-registration`?");
    etc.check_refused("xyzzy = 1", 1, "`xyzzy`");
    etc.check_refused("config = \"other.toml\"", 1, "`config`");
    etc.check_refused("print-config = true", 1, "`print-config`");
    etc.check_refused("\nlisten = 4600", 2, "`listen`");
    etc.check_refused("listen = \"here\"", 1, "\"here\"");
    etc.check_refused("request-messages-max = \"1\"", 1, "`request-messages-max`");
    etc.check_refused("request-messages-max = -1", 1, "`request-messages-max`");
    etc.check_refused("request-messages-max = 1.5", 1, "`request-messages-max`");
    etc.check_refused("account-devices-max = 901", 1, "900");
    for zero in [
        "request-messages-max",
        "request-body-bytes-max",
        "request-timeout-seconds",
        "connections-max",
    ] {
        etc.check_refused(&format!("{zero} = 0"), 1, zero);
    }
    etc.check_refused("allow-host = [\"https://a.example\"]", 1, "without https://");
    etc.check_refused("allow-host = [\"a.example:443\"]", 1, "port");
    etc.check_refused("trusted-proxy = [\"0.0.0.0/0\"]", 1, "the network is too large");
    etc.check_refused("log = \"???\"", 1, "expected a level");
    etc.check_refused("open-registration = \"true\"", 1, "`open-registration`");
    etc.check_refused("allow-origin = \"https://a.example\"", 1, "`allow-origin`");
    etc.check_refused("allow-origin = [\"https://a.example\", 5]", 1, "`allow-origin`");
    etc.check_refused("data = [\"d\"]", 1, "`data`");
    etc.check_refused("data = \"\"", 1, "`data`");
    etc.check_refused("[actual]\nweb = \"w\"", 1, "`actual`");
    etc.check_refused("log = \"warn\"\nlog = \"info\"", 2, "duplicate");
    etc.check_refused("log = \"warn\"\nlisten = ", 2, "");
    warren(&["serve", "--config", &etc.at("none.toml"), "--json"]).refused("file_not_found");
}

#[test]
fn a_token_that_can_be_guessed_is_refused() {
    let etc = SettingsFixture::new();
    for token in ["", "a\n", "fifteen letters\n"] {
        fs::write(etc.at("token"), token).unwrap();
        let serve = ["serve", "--admin-token-file", "token", "--listen", "127.0.0.1:0"];
        let ran = warren_in(&etc.at(""), &[], &serve);
        assert!(ran.stderr.contains("16 characters"), "{token:?}: {}", ran.stderr);
        assert!(!ran.status.success());
    }
}

#[test]
fn what_is_probably_a_mistake_is_in_the_log() {
    let etc = SettingsFixture::new();
    let (token, data) = (etc.at("token"), etc.at("data"));
    fs::write(&token, "an-operators-token\n").unwrap();
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", &data];
    let apps = ["--actual-budget", "/actual"];
    let serve = [&serve[..], &["--admin-token-file", &token], &apps].concat();
    let log = etc.at("log");
    let stderr = fs::File::create(&log).unwrap();
    let variables = [("WARREN_LISTN", "0.0.0.0:1"), ("NO_COLOR", "1")];
    drop(ServeProcess::for_people(start_with(&variables, stderr.into(), &serve)));
    let log = fs::read_to_string(&log).unwrap();
    for told in [
        "did you mean WARREN_LISTEN?",
        "this file contains a secret and all users can read it",
        "create their account with `warren account add actual`",
    ] {
        assert!(log.contains(told), "{told} in {log}");
    }
}

#[test]
fn a_variable_with_a_wrong_value_is_named() {
    let etc = SettingsFixture::new();
    let wrong = [("WARREN_LISTEN", "here")];
    let ran = warren_in(&etc.at(""), &wrong, &["serve"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(ran.stderr.contains("WARREN_LISTEN"), "{}", ran.stderr);
    let ran = warren_in(&etc.at(""), &wrong, &["serve", "--listen", "here"]);
    assert!(!ran.stderr.contains("WARREN_LISTEN"), "{}", ran.stderr);
}

#[test]
fn settings_that_exclude_or_need_each_other_are_looked_at_in_all_places_together() {
    let etc = SettingsFixture::new();
    let check_usage = |text: &str, variables: &[(&str, &str)], options: &[&str], told: &str| {
        let ran = etc.print(text, variables, options);
        assert_eq!(ran.status.code(), Some(2), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(told), "{told} in {}", ran.stderr);
    };
    check_usage("postgres-file = \"a\"\npostgres = \"b\"", &[], &[], "--postgres-file");
    check_usage("postgres = \"b\"\npostgres-file = \"a\"", &[], &[], "--postgres-file");
    let both = [("WARREN_POSTGRES", "a"), ("WARREN_POSTGRES_FILE", "b")];
    check_usage("", &both, &[], "--postgres-file");
    check_usage("", &[], &["--postgres", "a", "--postgres-file", "b"], "--postgres-file");
    check_usage("actual-budget-web = \"w\"", &[], &[], "--actual-budget");
    check_usage("", &[("WARREN_ACTUAL_BUDGET_WEB", "w")], &[], "--actual-budget");

    let higher = etc.settings("postgres = \"a\"", &[], &["--postgres-file", "b"]);
    check(&higher["postgres-file"], "b", "command_line");
    check(&higher["postgres"], Value::Null, "default");
    let higher = etc.settings("postgres-file = \"b\"", &[("WARREN_POSTGRES", "a")], &[]);
    check(&higher["postgres"], Value::Null, "environment");
    check(&higher["postgres-file"], Value::Null, "default");
    let together =
        etc.settings("actual-budget = \"127.0.0.1:0\"", &[], &["--actual-budget-web", "w"]);
    check(&together["actual-budget-web"], "w", "command_line");
}

#[test]
fn what_is_printed_is_a_settings_file() {
    let etc = SettingsFixture::new();
    let file = "data = 'a \"quoted\" place'\nallow-origin = [\"https://a.example\"]\n\
                account-bytes-max = 9_223_372_036_854_775_807\nopen-registration = true\n";
    let printed = etc.print(file, &[], &["--listen", "127.0.0.1:1"]).succeeded().stdout;
    let first = etc.settings(file, &[], &["--listen", "127.0.0.1:1"]);
    let again = etc.settings(&printed, &[], &[]);
    for (name, setting) in first.as_object().unwrap() {
        assert_eq!(again[name]["value"], setting["value"], "{name}:\n{printed}");
    }
    assert!(!fs::exists(etc.at("etc/a \"quoted\" place")).unwrap(), "nothing is served");
}

#[test]
fn a_secret_is_never_shown() {
    let etc = SettingsFixture::new();
    let file = format!("postgres = \"{SECRET}\"\n");
    let variable = [("WARREN_POSTGRES", SECRET)];
    let open = file.trim_end_matches("\"\n");
    let ran = [
        etc.print(&file, &[], &[]),
        etc.print(&file, &[], &["--json"]),
        etc.print("", &variable, &["--json"]),
        etc.print("", &variable, &[]),
        etc.print("", &[], &["--postgres", SECRET]),
        etc.print(&file, &[], &["--postgres", SECRET, "--postgres-file", "f"]),
        etc.print(open, &[], &[]),
        etc.print(&format!("postgres = [\"{SECRET}\"]"), &[], &[]),
        etc.print(&format!("{file}{file}"), &[], &[]),
        warren_in(&etc.at(""), &variable, &["serve", "--help"]),
        warren_in(&etc.at(""), &variable, &["settings"]),
        warren_in(&etc.at(""), &variable, &["man", &etc.at("man")]),
    ];
    for ran in ran {
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!told.is_empty() && !told.contains("correct-horse"), "{told}");
    }
    let page = fs::read_to_string(etc.at("man/warren-serve.1")).unwrap();
    assert!(!page.contains("correct-horse"), "{page}");
}

#[test]
fn other_commands_read_neither_variables_nor_file() {
    let etc = SettingsFixture::new();
    let server = ServeProcess::start(&etc.at("data"), &[]);
    drop(server);
    let data = etc.at("data");
    json(&["account", "list", "--data", &data]);
    let config = etc.write(&format!("data = \"{data}\"\n"));
    let variables = [("WARREN_DATA", data.as_str()), ("WARREN_CONFIG", config.as_str())];
    let elsewhere = etc.at("etc");
    warren_in(&elsewhere, &variables, &["account", "list", "--json"]).refused("file_not_found");
    warren_in(&elsewhere, &variables, &["backup", &etc.at("b"), "--json"])
        .refused("file_not_found");
}

#[test]
fn the_page_for_people_has_the_table_of_the_settings() {
    let page = include_str!("../../../../docs/operating/settings.md");
    let told: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let table = warren(&["settings"]).succeeded().stdout;
    let made: Vec<&str> = table.lines().collect();
    assert_eq!(told, made, "`cargo xtask docs` updates the table");
    assert!(made.len() > 20, "{table}");
}

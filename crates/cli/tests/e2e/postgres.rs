//! A server whose vaults are in PostgreSQL, and vaults that move.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::processes::{Server, json, sql, warren};
use crate::support::{Place, check_equal, sync, track_all};

/// The tests' PostgreSQL server, started once; it ends with the process.
fn lab() -> &'static postgres_lab::Server {
    static LAB: OnceLock<postgres_lab::Server> = OnceLock::new();
    LAB.get_or_init(|| postgres_lab::Server::start_temporary(&[]).unwrap())
}

/// A place whose vaults are in PostgreSQL, and two devices in step.
struct Beds {
    place: Place,
    /// The file with the database's URL.
    url: String,
    a: String,
    b: String,
}

impl Beds {
    fn new() -> (Self, Server) {
        let place = Place::new();
        let url = place.write("url.txt", &lab().url("postgres"));
        let (a, b) = (place.at("a.db"), place.at("b.db"));
        let beds = Self { place, url, a, b };
        let server = beds.serve_postgres();
        sql(&beds.a, "CREATE TABLE todo (id INTEGER PRIMARY KEY, text TEXT);");
        beds.edit(&beds.a, "one");
        track_all(&beds.a);
        beds.place.sign_in("sync", &beds.a, &server.address);
        beds.place.sign_in("clone", &beds.b, &server.address);
        check_equal(&beds.a, &beds.b);
        (beds, server)
    }

    fn serve_postgres(&self) -> Server {
        Server::start(&self.place.data, &["--postgres-file", &self.url])
    }

    fn edit(&self, file: &str, text: &str) {
        sql(file, &format!("INSERT INTO todo (text) VALUES ('{text}')"));
    }

    /// Both devices write, and come to the same rows without a repair. The server has another
    /// address than they remember.
    #[track_caller]
    fn sync_on(&self, server: &Server) {
        self.edit(&self.a, "of a");
        sql(&self.b, "UPDATE todo SET text = 'of b' WHERE id = 1");
        for file in [&self.a, &self.b, &self.a] {
            json(&["sync", file, "--server", &server.address]);
            sync(file);
        }
        check_equal(&self.a, &self.b);
    }

    /// Count and digest of the vault.
    #[track_caller]
    fn inspect(&self, in_postgres: bool) -> (Value, Value) {
        let mut command = vec!["inspect", "--login", "ada", "--verify"];
        if in_postgres {
            command.extend(["--postgres-file", &self.url]);
        }
        let mut vault = self.place.operator(&command);
        assert_eq!(vault["verified"], true, "{vault}");
        assert_eq!(vault["postgres"].is_string(), in_postgres, "{vault}");
        (vault["count"].take(), vault["digest"].take())
    }

    #[track_caller]
    fn carry(&self, to: &str, options: &[&str]) -> (Value, Value) {
        let carry = ["vault", "move", "ada", "--to", to, "--postgres-file", &self.url];
        let mut moved = self.place.operator(&[&carry, options].concat());
        (moved["count"].take(), moved["digest"].take())
    }
}

#[test]
fn a_server_on_postgres_is_killed_and_goes_on_and_its_vaults_move() {
    let (beds, server) = Beds::new();
    beds.sync_on(&server);
    server.kill();
    let server = beds.serve_postgres();
    beds.sync_on(&server);
    server.kill();
    let before = beds.inspect(true);

    assert_eq!(beds.carry("sqlite", &[]), before);
    assert_eq!(beds.inspect(false), before);
    let server = beds.place.serve();
    beds.sync_on(&server);
    server.stop();

    // Back to where the older copy still is, which goes on.
    let before = beds.inspect(false);
    assert_eq!(beds.carry("postgres", &["--remove-source"]), before);
    assert_eq!(beds.inspect(true), before);
    let server = beds.serve_postgres();
    beds.sync_on(&server);
    let devices =
        beds.place.operator(&["client", "list", "--login", "ada", "--postgres-file", &beds.url]);
    assert_eq!(devices["clients"].as_array().unwrap().len(), 2, "{devices}");
    server.stop();
    assert_eq!(beds.inspect(false).0, 0, "the file was removed, and is made anew");

    let remove = ["account", "remove", "ada", "--yes", "--data", &beds.place.data];
    json(&[&remove[..], &["--postgres-file", &beds.url]].concat());
}

#[test]
fn a_copy_that_is_none_is_refused_until_it_is_made_anew() {
    let (beds, server) = Beds::new();
    server.stop();
    // The file gets messages that the rows do not have.
    let server = beds.place.serve();
    beds.edit(&beds.a, "elsewhere");
    json(&["sync", &beds.a, "--server", &server.address]);
    server.stop();
    let server = beds.serve_postgres();
    beds.edit(&beds.b, "here");
    json(&["sync", &beds.b, "--server", &server.address]);
    server.stop();
    let carry = ["vault", "move", "ada", "--to", "sqlite", "--postgres-file", &beds.url];
    let rest = ["--data", &beds.place.data, "--password-file", &beds.place.password, "--json"];
    warren(&[&carry[..], &rest].concat()).refused("internal");
    let moved = beds.carry("sqlite", &["--start-over"]);
    assert_eq!((&moved, &moved), (&beds.inspect(true), &beds.inspect(false)));
}

#[test]
fn a_database_that_is_not_there_is_said_without_the_password() {
    let place = Place::new();
    let url = "postgres://ada:SECRET@127.0.0.1:1/warren";
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", &place.data, "--json"];
    let ran = warren(&[&serve[..], &["--postgres", url]].concat());
    ran.refused("unavailable");
    assert!(!ran.stdout.contains("SECRET") && !ran.stderr.contains("SECRET"));
}

#[test]
fn the_schema_is_printed_for_whoever_may_install_it() {
    let schema = warren(&["postgres", "schema"]).succeeded().stdout;
    assert!(schema.starts_with("BEGIN;") && schema.trim_end().ends_with("COMMIT;"));
    let proxy = json(&["postgres", "schema", "--plproxy"]);
    assert!(proxy["sql"].as_str().unwrap().contains("LANGUAGE plproxy"));
    assert_eq!(json(&["postgres", "schema"])["sql"], json!(schema.trim_end().to_owned() + "\n"));
}

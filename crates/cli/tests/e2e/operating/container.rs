//! Tests the `Dockerfile`: the image's server starts with these settings, and the other commands
//! find its data. Building the image is not tested.

use std::fs;
use std::process::{Command, Stdio};

use crate::emit::root;
use crate::processes::{ServeProcess, warren_in};

const CONTAINER_PAGE: &str = include_str!("../../../../../docs/operating/container.md");

/// Returns the last line of the Dockerfile that begins with this instruction, without it.
#[track_caller]
fn instruction<'a>(dockerfile: &'a str, name: &str) -> &'a str {
    let mut lines = dockerfile.lines().rev();
    let rest = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    rest.unwrap_or_else(|| panic!("the Dockerfile has no {name}"))
}

#[test]
fn the_image_serves_on_all_addresses_and_its_commands_find_the_data() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let instruction = |name| instruction(&dockerfile, name);
    assert_eq!(instruction("ENTRYPOINT"), "[\"warren\"]");
    let command: Vec<String> = serde_json::from_str(instruction("CMD")).unwrap();
    let (variable, address) = instruction("ENV").split_once('=').unwrap();
    let user = format!("`chown {} DIR`", instruction("USER"));
    for described in [&user, instruction("ENV"), instruction("VOLUME")] {
        assert!(CONTAINER_PAGE.contains(described), "the page does not describe {described}");
    }
    let (host, port) = address.split_once(':').unwrap();
    assert_eq!((host, port), ("0.0.0.0", instruction("EXPOSE")));
    let place = tempfile::tempdir().unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_warren"));
    serve.args(command).arg("--json").env(variable, "0.0.0.0:0").current_dir(place.path());
    serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let server = ServeProcess::new(serve.spawn().unwrap());
    assert!(server.address.starts_with("http://0.0.0.0:"), "{}", server.address);

    fs::write(place.path().join("password.txt"), "correct horse battery").unwrap();
    let folder = place.path().to_str().unwrap();
    let add = ["account", "add", "ada", "--password-file", "password.txt"];
    warren_in(folder, &[], &add).succeeded();
    let volume = instruction("VOLUME").strip_prefix(instruction("WORKDIR")).unwrap();
    let accounts = place.path().join(volume.trim_start_matches('/')).join("accounts.sqlite");
    assert!(accounts.is_file(), "{}", accounts.display());
}

//! The README, the guides and some pages for operators, tried: their commands are run from their
//! text, and what they print is compared with what the pages show ([`walkthrough`]).

mod code_block;
mod prepared;
mod transcript;
mod walkthrough;

use std::fs;
use std::path::Path;

use self::code_block::CodeBlock;
use self::walkthrough::Walkthrough;
use crate::fixture::PASSWORD;
use crate::mail::mbox_message;
use crate::processes::ServeProcess;

/// The address of the server in the pages.
const ADDRESS: &str = "http://127.0.0.1:4600";

/// The commands before a page that begins with an untracked file.
const WITH_A_FILE: &str = "warren account add ada
sqlite3 a.db \"CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note (text) VALUES ('Buy milk')\"
";

/// Programs whose name begins a line that a reader types.
const PROGRAMS: [&str; 9] =
    ["warren", "make", "cargo", "npm", "npx", "sqlite3", "python", "echo", "WARREN_"];

/// Commands of the guides that no walkthrough runs, and why.
const NOT_RUN: [(&str, &str); 7] = [
    ("cargo xtask web", "`make test` builds the web files in this way"),
    ("cargo xtask dist", "`cargo xtask ci dist` creates the archive with the binary of the tests"),
    ("npm create vite@latest", "the tests of the bundlers create the app from the guide's code"),
    ("npm install /path/to/warren/", "the tests of the browser client install the archive"),
    ("npm run dev", "the tests of the bundlers start the app"),
    ("WARREN_ALLOW_ORIGIN=http://localhost:5173 make run", "it builds Warren again"),
    ("warren serve --lmtp 127.0.0.1:2400", "the tests of the delivery start it at a free port"),
];

/// A page with a server that has its data in `./data`.
#[track_caller]
fn run_with_server(place: Walkthrough, before: &str, page: &str) {
    let server = ServeProcess::start(place.at("data").to_str().unwrap(), &[]);
    place.replace(ADDRESS, &server.address).run(before, page);
}

fn empty() -> Walkthrough {
    Walkthrough::new(PASSWORD)
}

#[test]
fn the_readme_ends_with_a_row_on_a_second_device() {
    let page = include_str!("../../../../README.md");
    assert!(page.contains("# prints: "));
    run_with_server(empty(), "", page);
}

#[test]
fn getting_started_does_what_it_says() {
    run_with_server(empty(), "", include_str!("../../../../docs/guide/getting-started.md"));
}

#[test]
fn the_guide_to_sync_does_what_it_says() {
    run_with_server(empty(), WITH_A_FILE, include_str!("../../../../docs/guide/sync.md"));
}

#[test]
fn the_guide_to_encryption_does_what_it_says() {
    let page = include_str!("../../../../docs/guide/end-to-end-encryption.md");
    let other = "warren account add bob
sqlite3 c.db 'CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)'
warren track c.db --all
warren sync c.db --server http://127.0.0.1:4600 --login bob
";
    run_with_server(empty(), &format!("{WITH_A_FILE}{other}"), page);
}

#[test]
fn the_guide_to_conflicts_does_what_it_says() {
    let page = include_str!("../../../../docs/guide/conflicts-and-history.md");
    let place = prepared::CONFLICT_IDS.iter().fold(empty(), |place, (id, variable)| {
        assert!(page.contains(id), "{id}");
        place.replace(id, variable)
    });
    run_with_server(place, prepared::CONFLICTS, page);
}

#[test]
fn the_guide_to_doctor_does_what_it_says() {
    let place = empty().skip_between("writing  users\n", "the rows depend on what others do");
    prepared::files_to_examine(&place);
    place.run(prepared::EXAMINED, include_str!("../../../../docs/guide/doctor.md"));
}

#[test]
fn the_guide_to_tune_does_what_it_says() {
    let place = empty()
        .skip_between("mmap_size 0\n", "  PRAGMA foreign_keys")
        .skip_between("shorter than people wait\n", "current settings, measured again")
        .skip_between("(effect of chance):", "the verdict is left to chance");
    prepared::file_to_tune(&place);
    place.run("", include_str!("../../../../docs/guide/tune.md"));
}

#[test]
fn the_guide_to_recover_does_what_it_says() {
    let place = empty();
    prepared::files_to_recover(&place);
    place.run("", include_str!("../../../../docs/guide/recover.md"));
}

#[test]
fn the_guide_to_the_tools_does_what_it_says() {
    let place = empty();
    prepared::files_to_examine(&place);
    place.run(prepared::EXAMINED, include_str!("../../../../docs/guide/tools.md"));
}

#[test]
fn the_guide_to_mail_does_what_it_says() {
    let place = empty();
    let archive: String = (0..3).map(mbox_message).collect();
    fs::write(place.at("archive.mbox"), archive.replace("The secret", "The milk")).unwrap();
    place.run("", include_str!("../../../../docs/guide/mail.md"));
}

#[test]
fn the_pages_for_operators_do_what_they_say() {
    empty().run("", include_str!("../../../../docs/operating/README.md"));
    empty().run("warren account add ada", include_str!("../../../../docs/operating/admin.md"));
    let account = "warren account add ada --data /srv/warren";
    empty().run(account, include_str!("../../../../docs/operating/backups.md"));
    empty().run(account, include_str!("../../../../docs/operating/faults.md"));
    empty().run("", include_str!("../../../../docs/operating/mail.md"));
    run_with_server(empty(), "", include_str!("../../../../docs/operating/accounts.md"));
}

/// The guide to Actual Budget is run with the data of a published server, in the tests `actual`.
const OTHER_TESTS: &str = include_str!("../actual/guide.rs");

#[test]
fn every_command_in_the_readme_and_the_guides_is_run() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let tests = [include_str!("guide.rs"), OTHER_TESTS].concat();
    let mut pages = vec![root.join("README.md")];
    pages.extend(fs::read_dir(root.join("docs/guide")).unwrap().map(|entry| entry.unwrap().path()));
    let (mut blocks_count, mut wrong) = (0, Vec::new());
    for page in pages {
        let name = page.strip_prefix(root).unwrap().display().to_string();
        let text = fs::read_to_string(&page).unwrap();
        for block in CodeBlock::all(&text) {
            blocks_count += 1;
            let is_run = matches!(block.language, "sh" | "console");
            if is_run && !tests.contains(&format!("/{name}\"")) {
                wrong.push(format!("{name}: no test runs this page"));
            }
            if block.language.is_empty() {
                wrong.push(format!("{name}: a block has no language: {:?}", block.lines));
            }
            let typed = block.lines.iter().filter(|line| {
                let is_known = |known: &str| line.starts_with(known);
                PROGRAMS.into_iter().any(is_known)
                    && !NOT_RUN.iter().any(|(line, _)| is_known(line))
            });
            wrong.extend(typed.filter(|_| !is_run).map(|line| format!("{name}: not run: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(blocks_count > 30, "{blocks_count} blocks were found");
}

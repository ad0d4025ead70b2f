//! Compiles the SQLite Multiple Ciphers amalgamation and SQLite's recovery extension
//! (`recover/README.md`), and links both statically under rusqlite.
//!
//! The whole archive is linked: this crate's Rust code mentions few of its symbols, and the linker
//! would otherwise drop those that rusqlite needs.
//!
//! Compiling takes a minute, so an existing archive is reused if it was built in the same way:
//! cargo runs this script whenever this file is newer, which it is in every new clone.

use std::path::Path;
use std::{env, fs, io};

/// SQLite's compile options, each with a reason unless it is a feature.
const OPTIONS: &[(&str, Option<&str>)] = &[
    // One connection is used by one thread at a time, which `rusqlite::Connection` (Send, not Sync)
    // proves.
    ("SQLITE_THREADSAFE", Some("2")),
    // A misspelt column in double quotes is an error, not a string. Schemas that hold such strings
    // still load: SQLite allows them when it reads a schema ("Always support for legacy schemas").
    ("SQLITE_DQS", Some("0")),
    // Memory statistics cost 15 % of small transactions with savepoints.
    ("SQLITE_DEFAULT_MEMSTATUS", Some("0")),
    ("SQLITE_LIKE_DOESNT_MATCH_BLOBS", None),
    ("SQLITE_OMIT_SHARED_CACHE", None),
    // Temporary files are written only on request: they contain the database's content, and remain
    // after a power loss.
    ("SQLITE_TEMP_STORE", Some("2")),
    // The journal of a savepoint stays in memory, as it always does for encrypted files: from 16
    // changed pages on, a transaction that shares its undo point with others would write a
    // temporary file. (A limit above 128 KiB would be wrong: SQLite writes at most that much at
    // once.)
    ("SQLITE_STMTJRNL_SPILL", Some("-1")),
    ("SQLITE_ENABLE_DBPAGE_VTAB", None),
    ("SQLITE_ENABLE_DBSTAT_VTAB", None),
    // Files of other programs have such tables; the doctor checks them, too.
    ("SQLITE_ENABLE_FTS4", None),
    ("SQLITE_ENABLE_RTREE", None),
    ("SQLITE_ENABLE_FTS5", None),
    ("SQLITE_ENABLE_PREUPDATE_HOOK", None),
    ("SQLITE_ENABLE_SESSION", None),
    ("SQLITE_ENABLE_STAT4", None),
    // The recovery extension asserts conditions that damaged pages violate. (SQLite defines NDEBUG
    // for its own code.)
    ("NDEBUG", None),
    // Without it SQLite's busy handler sleeps in whole seconds.
    ("HAVE_USLEEP", Some("1")),
];

/// Source of the recovery extension's only unit, which includes its other files.
const RECOVER_UNIT: &str = "recover/recover.c";
const RECOVER_FILES: [&str; 4] =
    [RECOVER_UNIT, "recover/sqlite3recover.h", "recover/dbdata.c", "recover/sqlite3recover.c"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    for file in RECOVER_FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    // `sqlite-wasm-rs` compiles the library for browsers, with a C library of its own.
    if env::var_os("CARGO_CFG_TARGET_FAMILY").is_some_and(|family| family == "wasm") {
        return Ok(());
    }
    // Clippy links nothing, and cargo keeps its artifacts apart from those of a build.
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").unwrap_or_default();
    if Path::new(&wrapper).file_stem().is_some_and(|program| program == "clippy-driver") {
        return Ok(());
    }
    let out_dir = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let out_dir = Path::new(&out_dir);
    let build = build();
    let (archive, made_in) = (out_dir.join("libsqlite3mc.a"), out_dir.join("way.txt"));
    let way = build_inputs(&build)?;
    // The file is written last: it shows that the archive is complete.
    if !archive.exists() || fs::read_to_string(&made_in).ok().as_ref() != Some(&way) {
        build.compile("sqlite3mc");
        fs::write(&made_in, way)?;
    }
    println!("cargo:rustc-link-search=native={}", out_dir.display());
    println!("cargo:rustc-link-lib=static:+whole-archive=sqlite3mc");
    Ok(())
}

fn build() -> cc::Build {
    let source_dir = sqlite3mc_src::source_dir();
    let mut build = cc::Build::new();
    build
        .file(source_dir.join(sqlite3mc_src::SOURCE_FILE))
        .file(RECOVER_UNIT)
        .include(source_dir)
        .cargo_metadata(false)
        .warnings(false);
    for (name, value) in OPTIONS {
        build.define(name, *value);
    }
    // With this, SQLite flushes a commit's writes without the file's times. On other systems SQLite
    // knows the right call.
    if env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux") {
        build.define("HAVE_FDATASYNC", "1");
    }
    build
}

/// Describes everything that the archive depends on: the source's version, which is in its path,
/// the recovery extension's content, the compiler with its version, and its arguments.
fn build_inputs(build: &cc::Build) -> io::Result<String> {
    let compiler = build.get_compiler();
    let version = compiler.to_command().arg("--version").output()?.stdout;
    let (program, arguments) = (compiler.path(), compiler.args());
    let recover: io::Result<String> = RECOVER_FILES.iter().map(fs::read_to_string).collect();
    Ok(format!(
        "{OPTIONS:?}\n{} {arguments:?}\n{}\n{}",
        program.display(),
        String::from_utf8_lossy(&version),
        recover?
    ))
}

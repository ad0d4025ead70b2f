//! Tests the harness with drivers that are shell scripts, and with one that cargo builds.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::tps::competitors::plan::SynchronousLevel;

fn workload() -> CompetitorWorkload<'static> {
    CompetitorWorkload {
        database: Path::new("a.sqlite"),
        pairs: Path::new("pairs"),
        cache_kib: 65_536,
        synchronous: SynchronousLevel::Full,
        reads: 3,
    }
}

fn about() -> Value {
    json!({
        "driver": "fake", "version": "1.2.3", "sqlite": "3.50.0", "runtime": "sh",
        "concurrent": true,
    })
}

fn answer() -> Value {
    let measured = json!({
        "transactions": 4_000,
        "seconds": 2.0,
        "latency_us": { "p50": 1.5, "p95": 2.5, "p99": 3.5, "max": 4.5 },
        "settings": { "journal_mode": "wal", "synchronous": 2, "cache_size": -65_536 },
    });
    let Value::Object(mut answer) = about() else { panic!("an object") };
    let Value::Object(measured) = measured else { panic!("an object") };
    answer.extend(measured);
    Value::Object(answer)
}

/// Returns a driver that identifies itself and runs `run` with a plan.
fn fake(folder: &Path, run: &str) -> TpsDriver {
    let script = folder.join("driver.sh");
    let about = about();
    let text = format!("if [ \"$1\" = about ]; then echo '{about}'; exit; fi\n{run}\n");
    fs::write(&script, text).unwrap();
    TpsDriver::start(DriverProgram { program: PathBuf::from("sh"), arguments: vec![script] })
        .unwrap()
}

/// Returns the error of a driver that runs this script.
fn error_of(run: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let plan = TpsDriverPlan::new(workload(), Duration::from_secs(2));
    format!("{:#}", fake(folder.path(), run).run(&plan).unwrap_err())
}

#[test]
fn a_driver_gets_the_plan_and_its_answer_becomes_a_sample() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let run = format!("cat > '{}'; echo '{}'", seen.display(), answer());
    let found = CompetitorSearch {
        present: vec![fake(folder.path(), &run)],
        absent: Vec::new(),
        unbuilt: Vec::new(),
    };
    let mut cases = cases(&found, workload());
    let [case] = &mut cases[..] else { panic!("one driver, one case") };
    assert_eq!(case.name, "fake 1.2.3");
    let sample = (case.run)(Duration::from_secs(2)).unwrap();
    assert!((sample.rate() - 2_000.0).abs() < 1e-9, "{sample:?}");
    let latency = sample.latency.unwrap();
    let waits = [latency.p50_us, latency.p95_us, latency.p99_us, latency.max_us];
    assert_eq!(waits.map(f64::to_bits), [1.5, 2.5, 3.5, 4.5].map(f64::to_bits));
    let plan: Value = serde_json::from_str(&fs::read_to_string(seen).unwrap()).unwrap();
    let expected = json!({
        "database": "a.sqlite", "pairs": "pairs", "warmup_seconds": 0.3, "seconds": 2.0,
        "concurrency": 1_000, "synchronous": "FULL", "cache_kib": 65_536, "reads": 3,
    });
    assert_eq!(plan, expected);
}

#[test]
fn an_answer_with_other_settings_is_refused() {
    for (name, value) in [
        ("journal_mode", json!("delete")),
        ("synchronous", json!(1)),
        ("cache_size", json!(-2_000)),
    ] {
        let mut answer = answer();
        answer["settings"][name] = value;
        let error = error_of(&format!("echo '{answer}'"));
        assert!(error.contains("instead of"), "{name}: {error}");
    }
}

#[test]
fn an_answer_that_measured_nothing_is_refused() {
    for (name, value) in [("transactions", json!(0)), ("seconds", json!(0.1))] {
        let mut answer = answer();
        answer[name] = value;
        error_of(&format!("echo '{answer}'"));
    }
}

#[test]
fn a_driver_that_fails_says_why() {
    let check = |run, expected| assert_eq!(error_of(run), format!("driver fake 1.2.3: {expected}"));
    check("echo '{\"error\":\"no table\"}'; exit 1", "no table");
    check("echo 'thread panicked' >&2; exit 101", "exit status: 101: thread panicked");
    check("kill -9 $$", "signal: 9 (SIGKILL)");
    assert!(error_of("echo hello").contains("did not print one line of JSON"));
    assert!(error_of("echo '{}'").contains("does not follow Format 7"));
}

#[test]
fn pairs_are_little_endian_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs");
    let pairs = TransferPairs::draw(1_000_000, 1);
    write_pairs(&path, &pairs).unwrap();
    let bytes = fs::read(path).unwrap();
    let (numbers, rest) = bytes.as_chunks();
    let written = numbers.iter().map(|number| i64::from_le_bytes(*number));
    assert!(rest.is_empty() && written.eq(pairs.iter().flat_map(|pair| [pair.credit, pair.debit])));
}

/// Writes a Rust driver without dependencies, with this main program.
fn write_rust_driver(folder: &Path, name: &str, main: &str) {
    let package = format!("name = \"competitor-{name}\"\nversion = \"0.1.0\"\n");
    fs::create_dir_all(folder.join(name).join("src")).unwrap();
    let write = |file: &str, text: String| fs::write(folder.join(name).join(file), text).unwrap();
    write("Cargo.toml", format!("[package]\n{package}edition = \"2024\"\n[workspace]\n"));
    write("Cargo.lock", format!("version = 4\n\n[[package]]\n{package}"));
    write("src/main.rs", main.to_owned());
}

#[test]
fn a_driver_is_built_and_one_that_cannot_be_is_absent_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let competitors = folder.path().join("competitors");
    let main = format!("fn main() {{ println!(\"{{}}\", r#\"{}\"#); }}", about());
    write_rust_driver(&competitors, "works", &main);
    write_rust_driver(&competitors, "broken", "fn main() { let x: u8 = \"\"; }");
    write_rust_driver(&competitors, "silent", "fn main() {}");
    fs::create_dir(competitors.join("shared")).unwrap();
    let target = folder.path().join("target");
    let found = find(&competitors, &target, &ProgressBar::hidden());
    let names: Vec<&str> = found.present.iter().map(|d| d.about.driver.as_str()).collect();
    assert_eq!(names, ["fake"]);
    let [broken, silent] = &found.absent[..] else { panic!("two: {:?}", found.absent) };
    assert_eq!((broken.name.as_str(), silent.name.as_str()), ("broken", "silent"));
    assert!(broken.reason.contains("E0308"), "{}", broken.reason);
    assert!(!competitors.join("works/target").exists());
}

#[test]
fn without_the_folder_the_competitors_are_absent() {
    let found = find(Path::new("no/such/folder"), Path::new("target"), &ProgressBar::hidden());
    let [absent] = &found.absent[..] else { panic!("one: {:?}", found.absent) };
    assert!(found.present.is_empty() && absent.reason.contains("no/such/folder"), "{absent:?}");
}

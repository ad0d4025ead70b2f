//! Tests the runner on programs that print the same reports as test programs.

use std::fs;
use std::path::Path;

use super::*;

const RUNNER: JobRunner = JobRunner {
    test_time_max: Duration::from_mins(1),
    retries_count: 2,
    retry_delay: Duration::from_millis(1),
};

/// A runner with a limit for tests that exceed it; an idle shell does not.
const SHORT: JobRunner = JobRunner { test_time_max: Duration::from_secs(5), ..RUNNER };

fn shell(name: &str, script: &str) -> TestJob {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    TestJob { name: name.to_owned(), command, is_about_disk: false, has_named_tests: false }
}

fn report(script: &str) -> TestReport {
    RUNNER.run_job(&shell("job", script)).unwrap()
}

fn failure(name: &str, test: Option<&str>, output: &str) -> TestFailure {
    TestFailure::new(name.to_owned(), test.map(str::to_owned), output)
}

/// Writes a program like libtest's, with the tests `a`, `b` and `c`: `$1` is `--list`, or `--exact`
/// and names. `scripts` is the body of `run NAME`.
fn program(folder: &Path, scripts: &str) -> TestJob {
    let path = folder.join("program");
    let script = format!(
        r#"#!/bin/sh
begin() {{ echo '{{"type":"test","event":"started","name":"'$1'"}}'; }}
ok() {{ echo '{{"type":"test","event":"ok","name":"'$1'","exec_time":1}}'; }}
failed() {{ echo '{{"type":"test","event":"failed","name":"'$1'","stdout":"why"}}'; status=101; }}
cd {}
status=0
run() {{
{scripts}
}}
case "$1" in
--list) echo 'a: test'; echo 'b: test'; echo 'c: test'; exit ;;
--exact) shift ;;
*) set a b c ;;
esac
echo "$*" >> runs
for test; do run $test; done
exit $status
"#,
        folder.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let command = Command::new(path);
    TestJob { name: "job".to_owned(), command, is_about_disk: false, has_named_tests: true }
}

/// Returns the tests that each process ran.
fn runs(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("runs")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn tests_are_counted_and_timed() {
    let report = report(
        r#"echo '{"type":"test","event":"started","name":"a"}'
           echo '{"type":"test","event":"ok","name":"a","exec_time":1.5}'
           echo '{"type":"test","event":"ignored","name":"b"}'
           echo '{"type":"test","event":"failed","name":"c","exec_time":2,"stdout":"why"}'
           echo 'test result: ok. 2 passed; 0 failed; 0 ignored'
           echo 'not JSON'; exit 101"#,
    );
    assert_eq!(report.passed_count, 3);
    assert_eq!(report.failed, [failure("job: c", Some("c"), "why")]);
    assert_eq!(report.durations, [(1.5, "job: a".to_owned()), (2.0, "job: c".to_owned())]);
}

#[test]
fn a_program_that_dies_fails_and_so_does_what_it_did_not_end() {
    let badly = failure("job (exited with an error)", None, "why");
    assert_eq!(report("echo why; exit 3").failed, [badly]);
    let begun = r#"echo '{"event":"started","name":"a"}'; kill -9 $$"#;
    assert_eq!(report(begun).failed, [failure("job: a (did not end)", Some("a"), "")]);
    assert!(report("true").failed.is_empty());
}

#[test]
fn two_run_at_one_time() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Each end of a pipe waits until the other is opened.
    let jobs = [format!("cat {}", pipe.display()), format!("echo x > {}", pipe.display())];
    let jobs = jobs.iter().map(|script| shell("end", script)).collect();
    assert!(RUNNER.run(jobs).unwrap().failed.is_empty());
}

#[test]
fn a_test_that_fails_once_is_flaky_and_does_not_fail_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let once =
        "begin $1; if [ $1 = b ] && mkdir failed 2>/dev/null; then failed $1; else ok $1; fi";
    let report = RUNNER.run(vec![program(folder.path(), once)]).unwrap();
    assert_eq!(report.flaky, [failure("job: b", Some("b"), "why")]);
    assert_eq!((report.passed_count, report.is_passed()), (3, true));
    assert_eq!(runs(folder.path()), ["a b c", "b"]);
}

#[test]
fn a_test_that_fails_always_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let always = "begin $1; if [ $1 = b ]; then failed $1; else ok $1; fi";
    let report = RUNNER.run(vec![program(folder.path(), always)]).unwrap();
    assert_eq!(report.failed, [failure("job: b", Some("b"), "why")]);
    assert_eq!((report.passed_count, report.is_passed()), (2, false));
    assert_eq!(runs(folder.path()), ["a b c", "b", "b"]);
}

#[test]
fn without_retries_a_test_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let runner = JobRunner { retries_count: 0, ..RUNNER };
    let report = runner.run(vec![program(folder.path(), "begin $1; failed $1")]).unwrap();
    assert_eq!((report.failed.len(), runs(folder.path())), (3, vec!["a b c".to_owned()]));
    assert_eq!(retries(&["--retries", "0", "fmt"]).unwrap(), (&["fmt"][..], 0));
    assert_eq!(retries(&["fmt"]).unwrap(), (&["fmt"][..], RETRIES_COUNT));
    assert!(retries(&["--retries", "fmt"]).is_err());
}

#[test]
fn a_program_whose_tests_have_no_names_runs_again_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"echo '{{"event":"ok","name":"a"}}'
           mkdir {}/failed 2>/dev/null || {{ echo '{{"event":"ok","name":"b"}}'; exit 0; }}
           echo '{{"event":"failed","name":"b","stdout":"why"}}'; exit 1"#,
        folder.path().display()
    );
    let report = RUNNER.run(vec![shell("web", &script)]).unwrap();
    assert_eq!(report.flaky, [failure("web: b", Some("b"), "why")]);
    assert_eq!((report.passed_count, report.is_passed()), (2, true));
}

#[test]
fn a_test_that_hangs_costs_itself_and_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    // `a` starts long after `b`, but runs next to it.
    let hangs = "if [ ! -e child ]; then
                     begin b; sleep 1000 & echo $! > child; sleep 4; begin a; wait
                 fi
                 begin $1; ok $1";
    let report = SHORT.run_job(&program(folder.path(), hangs)).unwrap();
    assert_eq!(report.failed, [failure("job: b (timed out after 5 s)", Some("b"), "")]);
    assert_eq!((report.passed_count, runs(folder.path())), (2, vec!["a b c".into(), "a c".into()]));
    let child = fs::read_to_string(folder.path().join("child")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn what_a_dead_program_had_not_begun_runs_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let dies = "begin $1; if [ $1 = b ]; then kill -9 $$; fi; ok $1";
    let report = RUNNER.run_job(&program(folder.path(), dies)).unwrap();
    assert_eq!(report.failed, [failure("job: b (did not end)", Some("b"), "")]);
    assert_eq!((report.passed_count, runs(folder.path())), (2, vec!["a b c".into(), "c".into()]));
}

#[test]
fn what_is_printed_after_a_program_has_ended_is_read() {
    let late = r#"(for i in 1 2 3 4 5 6 7; do sleep 1; echo $i; done
                   echo '{"event":"ok","name":"a"}') &"#;
    assert_eq!(report(late).passed_count, 1);
}

#[test]
fn what_is_left_running_does_not_hold_up_the_run() {
    let started = now();
    let left = r#"echo '{"event":"ok","name":"a"}'; sleep 1000 &"#;
    assert_eq!(report(left).passed_count, 1);
    assert!(started.elapsed() < Duration::from_secs(500));
}

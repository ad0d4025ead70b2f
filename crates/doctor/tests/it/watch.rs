//! Tests the figures that are collected while other processes use a database.

use std::time::Duration;

use doctor::FileWatcher;

use crate::fixture::{DoctorFixture, SqliteShell, sql_on};

const INTERVAL: Duration = Duration::from_millis(10);

#[test]
fn commits_are_counted_in_either_journal() {
    let fixture = DoctorFixture::new();
    for journal in ["DELETE", "WAL"] {
        let sql = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (x)");
        let path = fixture.make(journal, &sql);
        // The WAL's index is deleted with the last connection.
        let mut shell = SqliteShell::start(&path, "SELECT count(*) FROM t;");
        let mut watch = FileWatcher::new(&path).unwrap();
        assert_eq!(watch.observe(INTERVAL).unwrap().commits_count, Some(0), "{journal}");
        shell.run("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);");
        let watched = watch.observe(INTERVAL).unwrap();
        assert_eq!(watched.commits_count, Some(2), "{watched:?}");
        assert_eq!(watched.wal_frames_count.is_some(), journal == "WAL", "{watched:?}");
        assert_eq!(watched.users[0].pid.cast_unsigned(), shell.pid(), "{watched:?}");
    }
}

#[test]
fn who_writes_and_who_keeps_an_old_snapshot_is_named() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let reader = SqliteShell::start(&path, "BEGIN; SELECT count(*) FROM t;");
    let mut watch = FileWatcher::new(&path).unwrap();
    watch.observe(INTERVAL).unwrap();
    sql_on(&path, "INSERT INTO t VALUES (1)");
    let writer = SqliteShell::start(&path, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1);");
    let watched = watch.observe(INTERVAL).unwrap();
    let of = |pid: u32| {
        let pid = i32::try_from(pid).unwrap();
        watched.users.iter().find(|user| user.pid == pid).unwrap()
    };
    let (reader, writer) = (of(reader.pid()), of(writer.pid()));
    assert!(watched.writing_ratio > 0.0 && writer.writing_ratio > 0.0, "{watched:?}");
    assert_eq!((reader.writing_ratio, reader.reading_ratio), (0.0, 1.0), "{watched:?}");
    assert!(reader.snapshot_duration_ms.unwrap() > 0, "{watched:?}");
    assert!(reader.behind_frames_count.unwrap() > 0, "{watched:?}");
    assert_eq!(writer.behind_frames_count, Some(0), "{watched:?}");
}

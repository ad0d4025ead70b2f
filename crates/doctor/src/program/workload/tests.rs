use rusqlite::types::Value;

use super::QueryLog;

/// The shape, its calls, total microseconds, and the values of its example.
type ExpectedShape = (String, u64, Option<f64>, Option<Vec<Value>>);

/// Returns the shapes in a log.
fn read(log: &str) -> Vec<ExpectedShape> {
    let mut workload = QueryLog::default();
    workload.read(log.as_bytes()).unwrap();
    let all = workload.heaviest_first().into_iter();
    all.map(|it| (it.shape.clone(), it.calls, it.us, it.values.clone())).collect()
}

fn int(value: i64) -> Value {
    Value::Integer(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn statements_as_such_end_at_a_semicolon_or_where_the_next_begins() {
    let log = "SELECT * FROM t WHERE a = 1\nSELECT * FROM t WHERE a = 2\n\
               select b\nFROM t WHERE b IN (\n  SELECT c FROM u);\nBEGIN;\nnonsense\n\
               INSERT INTO t (a)\nSELECT 3\nUNION ALL\nSELECT 4;\n\
               WITH x AS (\nSELECT 1)\nSELECT * FROM x;";
    let mut found = read(log);
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let shapes: Vec<(&str, u64)> = found.iter().map(|it| (it.0.as_str(), it.1)).collect();
    assert_eq!(
        shapes,
        [
            ("INSERT INTO t (a) SELECT ? UNION ALL SELECT ?", 1),
            ("SELECT * FROM t WHERE a = ?", 2),
            ("WITH x AS (SELECT ?) SELECT * FROM x", 1),
            ("select b FROM t WHERE b IN (SELECT c FROM u)", 1),
        ]
    );
    let mut workload = QueryLog::default();
    workload.read(log.as_bytes()).unwrap();
    assert_eq!((workload.statements_count, workload.others_count), (5, 1));
    assert_eq!(workload.unread_lines_count, 1);
}

#[test]
fn a_trace_with_times_is_read() {
    let log = "SELECT * FROM a WHERE x = 'b'; -- 3000 ns\nSELECT * FROM a WHERE x = 'c;\n\
               d'; -- 5000 ns\nPRAGMA user_version; -- 10 ns\n";
    let shape = "SELECT * FROM a WHERE x = ?".to_owned();
    assert_eq!(read(log), [(shape, 2, Some(8.0), Some(vec![]))]);
}

#[test]
fn the_log_of_django_is_read() {
    let log = "DEBUG 2026-01-02 (0.002) SELECT \"a\".\"id\" FROM \"a\" WHERE \"a\".\"b\" = 'x(1.5) y'; \
               args=('x(1.5) y',); alias=default\n\
               (0.001) SELECT \"a\".\"id\" FROM \"a\" WHERE \"a\".\"b\" = 'z'; args=('z',); alias=default\n\
               (0.000) BEGIN; args=None; alias=default\n";
    let shape = "SELECT \"a\".\"id\" FROM \"a\" WHERE \"a\".\"b\" = ?".to_owned();
    assert_eq!(read(log), [(shape, 2, Some(3_000.0), Some(vec![]))]);
}

#[test]
fn the_log_of_sqlalchemy_is_read() {
    let log = "2026-01-02 03:04:05,6 INFO sqlalchemy.engine.Engine BEGIN (implicit)\n\
               2026-01-02 03:04:05,6 INFO sqlalchemy.engine.Engine SELECT a.id, a.name \n\
               FROM a \n\
               WHERE a.name = ? AND a.n > ?\n\
               2026-01-02 03:04:05,6 INFO sqlalchemy.engine.Engine [generated in 0.00010s] (\"it's\", 2)\n\
               INFO:sqlalchemy.engine.Engine:INSERT INTO a (name) VALUES (?)\n\
               INFO:sqlalchemy.engine.Engine:[cached since 1s ago] [('a',), ('b',), (None,)]\n\
               INFO:sqlalchemy.engine.Engine:INSERT INTO a (name) VALUES (?)\n\
               INFO:sqlalchemy.engine.Engine:[cached since 1s ago] [('a',)  ... displaying 10 of 1000 \
               total bound parameter sets ...  ('b',)]\n\
               INFO:sqlalchemy.engine.Engine:COMMIT\n";
    assert_eq!(
        read(log),
        [
            ("INSERT INTO a (name) VALUES (?)".to_owned(), 1_003, None, Some(vec![text("a")])),
            (
                "SELECT a.id, a.name FROM a WHERE a.name = ? AND a.n > ?".to_owned(),
                1,
                None,
                Some(vec![text("it's"), int(2)])
            ),
        ]
    );
}

#[test]
fn the_log_of_rails_is_read() {
    let log = "D, [2026-01-02T03:04:05.6 #7] DEBUG -- : [9f] \x1b[1m\x1b[36mUser Load (0.2ms)\x1b[0m  \
               \x1b[1m\x1b[34mSELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = ? AND name = ? \
               LIMIT ?\x1b[0m  [[\"id\", 1], [\"name\", nil], [\"LIMIT\", 1]]\n\
               \x20 CACHE User Load (0.0ms)  SELECT \"users\".* FROM \"users\"\n\
               \x20 ↳ app/models/user.rs:3\n\
               \x20 TRANSACTION (0.1ms)  COMMIT TRANSACTION\n\
               Completed 200 OK in 3ms (Views: 2.0ms | ActiveRecord: 0.4ms)\n";
    let shape = "SELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = ? AND name = ? LIMIT ?";
    let values = vec![int(1), Value::Null, int(1)];
    assert_eq!(read(log), [(shape.to_owned(), 1, Some(200.0), Some(values))]);
}

#[test]
fn what_is_too_long_or_no_text_is_counted() {
    let mut workload = QueryLog::default();
    let long = format!("SELECT '{}'\n\u{0}\n", "x\n".repeat(1_000_000));
    workload.read(long.as_bytes()).unwrap();
    workload.read(&b"\xff\xfe\x00\nSELECT ?\n"[..]).unwrap();
    assert_eq!(workload.statements_count, 1);
    assert!(workload.unread_lines_count > 1);
    assert_eq!(workload.heaviest_first()[0].values, None);
}

/// Checks that a log is not trusted, and that reading it does not take forever.
#[test]
fn a_hostile_log_is_read_in_its_limits() {
    let mut workload = QueryLog::default();
    let open = format!("SELECT (\n{}", "SELECT (\n".repeat(100_000));
    workload.read(open.as_bytes()).unwrap();
    let cut = format!("SELECT '\n{}", "a;\n".repeat(100_000));
    workload.read(cut.as_bytes()).unwrap();
    workload.read(&b"(inf ms)  SELECT 1\n(1e999ms)  SELECT 2\n(NaNms)  SELECT 3\n"[..]).unwrap();
    let calls = "sqlalchemy.engine SELECT ?\nsqlalchemy.engine [x] [(1) ... displaying 10 of \
                 18446744073709551615 total bound parameter sets ... ]\n";
    workload.read(calls.repeat(3).as_bytes()).unwrap();
    for logged in workload.heaviest_first() {
        assert!(logged.calls < 1_000_000 && logged.us.is_none_or(f64::is_finite), "{logged:?}");
    }
}

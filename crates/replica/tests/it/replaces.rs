//! Tests of `OR REPLACE`, which deletes rows silently: by any UNIQUE index, by the key's index, by
//! the rowid. Every device deletes these rows.

use proptest::prelude::*;

use crate::support::{MemoryServer, TestDevice, meet};

/// Table, its rows on all devices, and the statement that then replaces one or more of them.
struct ReplaceCase {
    schema: &'static str,
    rows: &'static str,
    replace: &'static str,
    /// Number of rows that are left.
    left: usize,
}

const CASES: &[ReplaceCase] = &[
    ReplaceCase {
        schema: "CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, n)",
        rows: "('Red', 1), ('Blue', 2)",
        replace: "INSERT OR REPLACE INTO t VALUES ('red', 3)",
        left: 2,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, n) WITHOUT ROWID",
        rows: "('Red', 1), ('Blue', 2)",
        replace: "UPDATE OR REPLACE t SET k = 'bLUE' WHERE k = 'RED'",
        left: 1,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (a INTEGER, b TEXT COLLATE RTRIM, n, PRIMARY KEY (b DESC, a))",
        rows: "(1, 'x', 1), (2, 'x', 1)",
        replace: "REPLACE INTO t VALUES (1, 'x  ', 2)",
        left: 2,
    },
    // The index has another collation than its column.
    ReplaceCase {
        schema: "CREATE TABLE t (k TEXT PRIMARY KEY, u);
                 CREATE UNIQUE INDEX one ON t (u COLLATE NOCASE DESC)",
        rows: "('a', 'Red'), ('b', 'Blue')",
        replace: "REPLACE INTO t VALUES ('c', 'RED'); UPDATE OR REPLACE t SET u = 'blue' WHERE k = 'c'",
        left: 1,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (k TEXT PRIMARY KEY, u);
                 CREATE UNIQUE INDEX one ON t (k COLLATE NOCASE)",
        rows: "('a', 1)",
        replace: "REPLACE INTO t VALUES ('A', 2)",
        left: 1,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, u);
                 CREATE UNIQUE INDEX one ON t (lower(u))",
        rows: "(1, 'Ada@Example.org'), (2, 'bob')",
        replace: "REPLACE INTO t (u) VALUES ('ada@example.ORG');
                  UPDATE OR REPLACE t SET u = 'BOB' WHERE id = 3",
        left: 1,
    },
    // The index has expressions with every clause that an index allows.
    ReplaceCase {
        schema: "CREATE TABLE \"t (x\" (id INTEGER PRIMARY KEY, \"desc\" TEXT, body TEXT, asc INT);
                 CREATE UNIQUE INDEX \"one (,\" ON \"t (x\" (
                    substr(\"desc\", 1, iif(asc IS NULL, 3, 2)) COLLATE NOCASE DESC, -- ), '
                    body ->> '$.a,)' /* , */ ASC, asc, (id IS NULL) || 'a' || ')'
                 ) WHERE body NOT LIKE '%where%' -- of some",
        rows: "(1, 'Redder', '{\"a,)\":1}', 0), (2, 'Reddish', '{\"a,)\":1}', 1),
               (3, 'Red', '{\"a,)\":1,\"where\":1}', 0)",
        replace: "REPLACE INTO t VALUES (4, 'reds', '{\"a,)\":1}', 0)",
        left: 3,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT, other,
                    name TEXT AS (body ->> 'name') VIRTUAL, UNIQUE (name, other))",
        rows: "(1, '{\"name\":\"a\"}', 1), (2, '{\"name\":\"a\"}', 2), (3, '{\"name\":\"b\"}', 3)",
        replace: "REPLACE INTO t (body, other) VALUES ('{\"name\":\"b\"}', 3);
                  UPDATE OR REPLACE t SET other = 2 WHERE id = 1",
        left: 2,
    },
    // The index on a constant limits the table to one row.
    ReplaceCase {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, \"it's\");
                 CREATE UNIQUE INDEX one ON t ((1)); CREATE UNIQUE INDEX two ON t (\"it's\" || '')",
        rows: "(1, 'a')",
        replace: "REPLACE INTO t VALUES (2, 'b')",
        left: 1,
    },
    // REPLACE substitutes the default for NULL.
    ReplaceCase {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT 'it''s' UNIQUE,
                    b TEXT NOT NULL DEFAULT word UNIQUE, c NOT NULL DEFAULT (1 + 1) UNIQUE)",
        rows: "(1, 'it''s', 'x', 10), (2, 'y', 'word', 11), (3, 'z', 'v', 2)",
        replace: "REPLACE INTO t VALUES (4, NULL, 'four', 12), (5, 'five', 'five', NULL)",
        left: 3,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, UNIQUE (a, b) ON CONFLICT REPLACE)",
        rows: "(1, 1, 1), (2, 1, 2), (3, NULL, 1)",
        replace: "INSERT INTO t VALUES (4, 1, 1), (5, NULL, 1); UPDATE t SET b = 2 WHERE id = 4",
        left: 3,
    },
    // Without an affinity both values are stored, but they are equal for the index.
    ReplaceCase {
        schema: "CREATE TABLE t (k PRIMARY KEY, n)",
        rows: "(1, 'integer'), (2.5, 'real'), ('1', 'text')",
        replace: "REPLACE INTO t VALUES (1.0, 'real')",
        left: 3,
    },
    ReplaceCase {
        schema: "CREATE TABLE t (k ANY PRIMARY KEY, n ANY) STRICT, WITHOUT ROWID",
        rows: "(1, 'integer'), (2.0, 'real')",
        replace: "UPDATE OR REPLACE t SET k = 1.0 WHERE k = 2",
        left: 1,
    },
    // The rowid, which has no declared name, decides which rows are replaced.
    ReplaceCase {
        schema: "CREATE TABLE t (k TEXT PRIMARY KEY, rowid)",
        rows: "('a', 1), ('b', 2), ('c', 3)",
        replace: "REPLACE INTO t (_rowid_, k, rowid) VALUES (1, 'd', 4);
                  UPDATE OR REPLACE t SET oid = 2 WHERE k = 'c'",
        left: 2,
    },
];

#[test]
fn what_replace_deletes_is_gone_everywhere() {
    for case in CASES {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(case.schema, &mut server));
        let name = if case.schema.contains("t (x") { "\"t (x\"" } else { "t" };
        let write = |device: &mut TestDevice, sql: &str| {
            let sql = sql.replace("INTO t ", &format!("INTO {name} "));
            device.write(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        };
        write(&mut devices[0], &format!("INSERT INTO t VALUES {}", case.rows));
        meet(&devices, &mut server);
        write(&mut devices[1], case.replace);
        meet(&devices, &mut server);
        let agree = |left: usize| {
            for device in &devices {
                assert_eq!(device.dump(), devices[1].dump(), "{}", case.schema);
                assert_eq!(device.dump().len(), left, "{}", case.schema);
                assert_eq!(device.replica().hidden_rows().unwrap(), [], "{}", case.schema);
            }
        };
        agree(case.left);
        // No replaced row is left that the state of its own device takes for visible.
        devices[0].write(&format!("DELETE FROM {name}")).unwrap();
        meet(&devices, &mut server);
        for device in &devices {
            assert_eq!(device.dump(), Vec::<String>::new(), "{}", case.schema);
        }
    }
}

#[test]
fn what_replace_deletes_by_an_index_that_is_newer_than_the_triggers_is_gone_too() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT)";
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    devices[0].write("INSERT INTO t VALUES (1, 'Red'), (2, 'Blue')").unwrap();
    meet(&devices, &mut server);
    let statements = "CREATE UNIQUE INDEX one ON t (lower(u)); REPLACE INTO t (u) VALUES ('red')";
    devices[1].write(statements).unwrap();
    devices[1].sync(&mut server);
    devices[1].write("UPDATE OR REPLACE t SET u = 'BLUE' WHERE u = 'red'").unwrap();
    meet(&devices, &mut server);
    for device in &devices {
        assert_eq!(device.texts("SELECT id || u FROM t"), ["3BLUE"]);
    }
}

const KEYS: &[&str] = &[
    "k INTEGER PRIMARY KEY",
    "k TEXT NOT NULL PRIMARY KEY",
    "k TEXT NOT NULL PRIMARY KEY COLLATE NOCASE",
    "k NOT NULL PRIMARY KEY",
    "k NUMERIC NOT NULL PRIMARY KEY DESC",
];

const INDEXES: &[&str] = &[
    "a",
    "a COLLATE NOCASE",
    "lower(a)",
    "b",
    "c",
    "g",
    "g, b",
    "coalesce(a, b) COLLATE RTRIM DESC",
    "b + 1, typeof(a)",
    "a) WHERE (b > 1",
    "k COLLATE NOCASE",
    "lower(k) || b) WHERE (c <> 'd'",
];

fn any_value() -> impl Strategy<Value = &'static str> {
    let values = vec!["'a'", "'A'", "'a '", "'b'", "1", "1.0", "2", "2.5", "'1'", "x'61'", "NULL"];
    prop::sample::select(values)
}

/// Generates a statement of one of three devices, or `None`, which is a sync.
fn any_step() -> impl Strategy<Value = (usize, Option<String>)> {
    let value = any_value;
    let or = || prop::sample::select(vec!["REPLACE", "REPLACE", "REPLACE", "IGNORE", "ABORT"]);
    let column = || prop::sample::select(vec!["k", "a", "b", "c", "rowid"]);
    let step = prop_oneof![
        6 => (or(), value(), value(), value(), value()).prop_map(|(or, k, a, b, c)| {
            Some(format!("INSERT OR {or} INTO t (k, a, b, c) VALUES ({k}, {a}, {b}, {c})"))
        }),
        1 => (or(), 1..4, value(), value()).prop_map(|(or, rowid, k, a)| {
            Some(format!("INSERT OR {or} INTO t (rowid, k, a) VALUES ({rowid}, {k}, {a})"))
        }),
        4 => (or(), column(), value(), column(), value()).prop_map(|(or, set, new, by, value)| {
            Some(format!("UPDATE OR {or} t SET {set} = {new} WHERE {by} IS {value}"))
        }),
        1 => (column(), value()).prop_map(|(by, value)| {
            Some(format!("DELETE FROM t WHERE {by} IS {value}"))
        }),
        2 => (value(), value()).prop_map(|(id, of)| {
            Some(format!("INSERT OR REPLACE INTO child VALUES ({id}, {of})"))
        }),
        4 => Just(None),
    ];
    (0_usize..3, step)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn replace_by_any_unique_index_ends_alike(
        key in prop::sample::select(KEYS),
        option in prop::sample::select(vec!["", "WITHOUT ROWID"]),
        indexes in prop::sample::subsequence(INDEXES, 0..5),
        steps in prop::collection::vec(any_step(), 1..50),
    ) {
        let indexes = indexes.iter().enumerate().map(|(number, terms)| {
            format!("CREATE UNIQUE INDEX unique_{number} ON t ({terms});")
        });
        let schema = format!(
            "CREATE TABLE t ({key}, a TEXT, b, c NOT NULL DEFAULT 'd', g AS (lower(a) || b))
             {option};
             CREATE TABLE child (id TEXT NOT NULL PRIMARY KEY, of REFERENCES t ON DELETE CASCADE);
             {}",
            indexes.collect::<String>(),
        );
        let mut server = MemoryServer::default();
        let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(&schema, &mut server));
        for (place, step) in &steps {
            match step {
                // The table may refuse the statement.
                Some(sql) => drop(devices[*place].write(sql)),
                None => prop_assert!(devices[*place].sync(&mut server).in_sync),
            }
        }
        // Deleting the visible rows shows the rows that they hid; these are compared, too.
        loop {
            meet(&devices, &mut server);
            let rows = devices[0].dump();
            for device in &devices {
                prop_assert_eq!(device.dump(), &*rows);
            }
            if rows.is_empty() {
                break;
            }
            devices[0].write("DELETE FROM child; DELETE FROM t").unwrap();
        }
        for device in &devices {
            prop_assert_eq!(device.replica().hidden_rows().unwrap(), []);
        }
    }
}

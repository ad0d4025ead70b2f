//! Tests that a deleted row that others refer to is visible on all devices or on none, in any
//! order.

use crate::support::{MemoryServer, TestDevice, meet};

struct ReferenceCase {
    schema: &'static str,
    parent: &'static str,
    child: &'static str,
    /// Whether the parent is visible while the child exists.
    is_kept: bool,
}

const CASES: &[ReferenceCase] = &[
    ReferenceCase {
        schema: "CREATE TABLE p (k INTEGER PRIMARY KEY); CREATE TABLE c (id TEXT PRIMARY KEY, of REFERENCES p)",
        parent: "(1)",
        child: "('c', 1)",
        is_kept: true,
    },
    // The foreign key lists the columns in another order than the primary key.
    ReferenceCase {
        schema: "CREATE TABLE p (a TEXT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
                 CREATE TABLE c (id TEXT PRIMARY KEY, x TEXT, y TEXT, FOREIGN KEY (x, y) REFERENCES p (b, a))",
        parent: "('a', 'b')",
        child: "('c', 'b', 'a')",
        is_kept: true,
    },
    // SQLite takes the values for equal, but the reference is stored differently from the key.
    ReferenceCase {
        schema: "CREATE TABLE p (k NOT NULL PRIMARY KEY); CREATE TABLE c (id TEXT PRIMARY KEY, of REFERENCES p)",
        parent: "(1)",
        child: "('c', 1.0)",
        is_kept: false,
    },
    ReferenceCase {
        schema: "CREATE TABLE p (k INTEGER PRIMARY KEY); CREATE TABLE c (id TEXT PRIMARY KEY, of TEXT REFERENCES p)",
        parent: "(1)",
        child: "('c', 1)",
        is_kept: false,
    },
    ReferenceCase {
        schema: "CREATE TABLE p (k TEXT NOT NULL PRIMARY KEY COLLATE NOCASE);
                 CREATE TABLE c (id TEXT PRIMARY KEY, of TEXT COLLATE NOCASE REFERENCES p)",
        parent: "('red')",
        child: "('c', 'RED')",
        is_kept: false,
    },
    ReferenceCase {
        schema: "CREATE TABLE p (k INTEGER PRIMARY KEY, code TEXT UNIQUE);
                 CREATE TABLE c (id TEXT PRIMARY KEY, of REFERENCES p (code))",
        parent: "(1, 'red')",
        child: "('c', 'red')",
        is_kept: false,
    },
];

#[test]
fn a_deleted_row_is_visible_on_all_devices_or_on_none() {
    for (case, delete_first) in CASES.iter().flat_map(|case| [(case, false), (case, true)]) {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(case.schema, &mut server));
        devices[0].write(&format!("INSERT INTO p VALUES {}", case.parent)).unwrap();
        meet(&devices, &mut server);
        devices[0].write("DELETE FROM p").unwrap();
        devices[1].write(&format!("INSERT INTO c VALUES {}", case.child)).unwrap();
        let first = usize::from(!delete_first);
        devices[first].sync(&mut server);
        devices[2].sync(&mut server);
        meet(&devices, &mut server);
        for device in &devices {
            let parents = device.texts("SELECT 'p' FROM p").len();
            assert_eq!(parents, usize::from(case.is_kept), "{} {delete_first}", case.schema);
            assert_eq!(device.dump(), devices[0].dump(), "{}", case.schema);
        }
        devices[2].write("DELETE FROM c").unwrap();
        meet(&devices, &mut server);
        for device in &devices {
            assert_eq!(device.dump(), Vec::<String>::new(), "{}", case.schema);
        }
    }
}

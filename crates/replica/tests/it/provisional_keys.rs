//! Tests of auto keys: SQLite assigns the same key to new rows on two devices, and both rows stay.

use std::collections::BTreeSet;

use proptest::prelude::*;
use protocol::{
    EnableE2eeRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use replica::{PageStream, PullParams, RenumberedRow, Result, Transport};

use crate::support::{MemoryServer, TestDevice, dump};

/// Schema as Django declares models with relations: a many-to-many relation, a parent in the same
/// table and a child that shares its parent's key.
const SHOP: &str = r#"
    CREATE TABLE "product" (
        "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "name" varchar(100) NOT NULL, "note" text,
        "parent_id" bigint REFERENCES "product" ("id") DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE "tag" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" text NOT NULL);
    CREATE TABLE "product_tags" (
        "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "product_id" bigint NOT NULL REFERENCES "product" ("id") DEFERRABLE INITIALLY DEFERRED,
        "tag_id" bigint NOT NULL REFERENCES "tag" ("id") DEFERRABLE INITIALLY DEFERRED,
        UNIQUE ("product_id", "tag_id"));
    CREATE TABLE "book" (
        "product_ptr_id" bigint NOT NULL PRIMARY KEY
            REFERENCES "product" ("id") DEFERRABLE INITIALLY DEFERRED,
        "pages" integer NOT NULL);
    CREATE TABLE "quote" (
        "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
        "book_id" bigint NOT NULL REFERENCES "book" ("product_ptr_id"), "words" text NOT NULL);
    CREATE TABLE "place" (
        "product_id" bigint NOT NULL REFERENCES "product", "shelf" text NOT NULL,
        PRIMARY KEY ("product_id", "shelf")) WITHOUT ROWID;
"#;

const PLAIN: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";

/// Query for the relations between rows, whatever their keys are.
const MEANING: &str = "
    SELECT p.name || coalesce(' of ' || o.name, '') || coalesce(' ' || p.note, '')
        FROM product p LEFT JOIN product o ON o.id = p.parent_id
    UNION ALL SELECT p.name || ' is ' || t.name FROM product_tags
        JOIN product p ON p.id = product_id JOIN tag t ON t.id = tag_id
    UNION ALL SELECT p.name || ' says ' || words FROM quote
        JOIN book ON product_ptr_id = book_id JOIN product p ON p.id = product_ptr_id
    UNION ALL SELECT p.name || ' is on ' || shelf FROM place JOIN product p ON p.id = product_id
    ORDER BY 1";

fn add_book(device: &mut TestDevice, name: &str) {
    let sql = format!(
        "BEGIN;
         INSERT INTO product (name) VALUES ('shelf of {name}');
         INSERT INTO product (name, parent_id) VALUES ('{name}', last_insert_rowid());
         INSERT INTO book SELECT max(id), 100 FROM product;
         INSERT INTO place SELECT max(id), 'left' FROM product;
         INSERT INTO tag (name) VALUES ('kind of {name}');
         INSERT INTO product_tags (product_id, tag_id)
             SELECT max(product.id), last_insert_rowid() FROM product;
         INSERT INTO quote (book_id, words)
             SELECT max(product_ptr_id), 'words of {name}' FROM book;
         COMMIT;"
    );
    device.write(&sql).unwrap();
}

fn meaning_of_book(name: &str) -> Vec<String> {
    vec![
        format!("shelf of {name}"),
        format!("{name} of shelf of {name}"),
        format!("{name} is kind of {name}"),
        format!("{name} says words of {name}"),
        format!("{name} is on left"),
    ]
}

#[test]
fn rows_that_two_devices_gave_one_key_stay_two_and_keep_their_relations() {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(SHOP, &mut server));
    for (device, name) in devices.iter_mut().zip(["red", "blue", "green"]) {
        add_book(device, name);
        device.write(&format!("UPDATE product SET note = 'new' WHERE name = '{name}'")).unwrap();
    }
    let first = devices[0].sync(&mut server);
    assert_eq!(first.renumbered_rows, [], "nobody was before it");
    let second = devices[1].sync(&mut server);
    let of_table = |table: &str| {
        let of_table = second.renumbered_rows.iter().filter(|row| row.table == table);
        of_table.map(|row| (row.old_key, row.new_key)).collect::<Vec<_>>()
    };
    assert_eq!(of_table("product"), [(1, 3), (2, 4)]);
    assert_eq!(of_table("tag"), [(1, 2)]);
    assert_eq!(of_table("book"), [], "its key is its parent's");
    for device in [2, 0, 1, 2] {
        assert!(devices[device].sync(&mut server).in_sync);
    }
    let mut expected: Vec<_> = ["red", "blue", "green"].map(meaning_of_book).concat();
    for line in &mut expected {
        if line.contains(" of shelf of ") {
            line.push_str(" new");
        }
    }
    expected.sort();
    for device in &devices {
        assert_eq!(device.texts(MEANING), expected);
        assert_eq!(device.violations(), 0);
        assert_eq!(device.dump(), devices[0].dump());
        assert_eq!(device.replica().conflicts().unwrap(), [], "nothing was lost");
    }
}

#[test]
fn a_key_that_a_program_chose_names_one_row_on_all_devices() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    one.write("INSERT INTO t VALUES (20261123, 'one')").unwrap();
    two.write("INSERT INTO t (v) VALUES ('counted')").unwrap();
    two.write("INSERT INTO t VALUES (20261123, 'two')").unwrap();
    one.sync(&mut server);
    assert_eq!(two.sync(&mut server).renumbered_rows, []);
    one.sync(&mut server);
    for device in [&one, &two] {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1counted", "20261123two"]);
    }
}

#[test]
fn a_row_that_came_and_went_between_two_syncs_takes_no_other_with_it() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    one.write("INSERT INTO t (v) VALUES ('stays')").unwrap();
    two.write("INSERT INTO t (v) VALUES ('goes')").unwrap();
    two.write("DELETE FROM t").unwrap();
    one.sync(&mut server);
    two.sync(&mut server);
    one.sync(&mut server);
    for device in [&one, &two] {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1stays"]);
    }
    // Without AUTOINCREMENT a key is reused; deleted rows stay deleted, and new rows are new.
    for (device, v) in [(&mut one, "of one"), (&mut two, "of two")] {
        device.write("DELETE FROM t").unwrap();
        device.write(&format!("INSERT INTO t (v) VALUES ('{v}')")).unwrap();
        device.write(&format!("UPDATE t SET v = v || ', edited' WHERE v = '{v}'")).unwrap();
    }
    one.sync(&mut server);
    // Both devices assigned the deleted row's key, and both would have assigned the next one.
    let moved = RenumberedRow { table: "t".into(), old_key: 1, new_key: 3 };
    assert_eq!(two.sync(&mut server).renumbered_rows, [moved]);
    one.sync(&mut server);
    for device in [&one, &two] {
        let rows = device.texts("SELECT id || v FROM t ORDER BY id");
        assert_eq!(rows, ["2of one, edited", "3of two, edited"]);
    }
}

#[test]
fn an_edit_of_what_is_gone_meets_no_new_row_of_its_key() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    one.write("INSERT INTO t (v) VALUES ('old')").unwrap();
    one.sync(&mut server);
    two.sync(&mut server);
    one.write("DELETE FROM t").unwrap();
    one.write("INSERT INTO t (v) VALUES ('new')").unwrap();
    two.write("UPDATE t SET v = 'old, edited'").unwrap();
    two.sync(&mut server);
    assert_eq!(one.sync(&mut server).renumbered_rows.len(), 1);
    two.sync(&mut server);
    for device in [&one, &two] {
        let rows = device.texts("SELECT id || v FROM t ORDER BY id");
        assert!(rows.contains(&"2new".to_owned()), "{rows:?}");
        assert_eq!(device.dump(), one.dump());
    }
}

#[test]
fn tables_that_do_not_sync_follow_and_other_references_are_told() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    two.app.execute_batch("CREATE TABLE draft (of INTEGER REFERENCES t, words TEXT)").unwrap();
    one.write("INSERT INTO t (v) VALUES ('a')").unwrap();
    two.write("INSERT INTO t (v) VALUES ('b')").unwrap();
    two.app.execute_batch("INSERT INTO draft VALUES (1, 'about b')").unwrap();
    one.sync(&mut server);
    assert_eq!(two.sync(&mut server).renumbered_rows.len(), 1);
    assert_eq!(two.texts("SELECT v || words FROM draft JOIN t ON id = of"), ["babout b"]);
    assert_eq!(two.sync(&mut server).renumbered_rows, [], "once");
}

/// Transport that lets another device sync between the pull and the push.
struct RacingTransport<'a> {
    server: &'a mut MemoryServer,
    others: Vec<TestDevice>,
}

impl Transport for RacingTransport<'_> {
    fn register(
        &mut self,
        _: Option<&str>,
        _: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        unreachable!("all are registered")
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.server.pull(token, pull)
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        self.server.stream(token, cursor)
    }

    fn push(&mut self, token: &str, request: &PushRequest, to: u64) -> Result<PushResponse> {
        if let Some(other) = self.others.pop() {
            other.sync(self.server);
        }
        self.server.push(token, request, to)
    }

    fn reconcile(&mut self, token: &str, claims: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.server.reconcile(token, claims)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.server.encrypt(token, request)
    }
}

#[test]
fn pushes_that_race_send_no_key_twice() {
    let mut server = MemoryServer::default();
    let mut devices: Vec<_> = (0..4).map(|_| TestDevice::tracked(PLAIN, &mut server)).collect();
    for (number, device) in devices.iter_mut().enumerate() {
        device.write(&format!("INSERT INTO t (v) VALUES ('row {number}')")).unwrap();
    }
    let last = devices.pop().unwrap();
    let mut race = RacingTransport { server: &mut server, others: devices };
    let report = last.try_sync_with(&mut race, false).unwrap();
    let keys: Vec<_> =
        report.renumbered_rows.iter().map(|row| (row.old_key, row.new_key)).collect();
    assert_eq!(keys, [(1, 4)], "it was overtaken three times");
    assert!(report.in_sync);
    let rows = last.texts("SELECT id || v FROM t ORDER BY id");
    assert_eq!(rows, ["1row 2", "2row 1", "3row 0", "4row 3"]);
}

#[test]
fn an_answer_that_is_lost_makes_no_second_row() {
    for lost in 1..6 {
        let mut server = MemoryServer::default();
        let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
        one.write("INSERT INTO t (v) VALUES ('a')").unwrap();
        one.sync(&mut server);
        two.write("INSERT INTO t (v) VALUES ('b')").unwrap();
        server.lose_answer = Some(server.requests + lost);
        drop(two.try_sync(&mut server, false));
        server.lose_answer = None;
        one.write("INSERT INTO t (v) VALUES ('c')").unwrap();
        for device in [&one, &two, &one] {
            device.sync(&mut server);
        }
        for device in [&one, &two] {
            let mut rows = device.texts("SELECT v FROM t");
            rows.sort();
            assert_eq!(rows, ["a", "b", "c"], "answer {lost}");
        }
    }
}

#[test]
fn a_row_that_a_copied_file_has_too_stays_one() {
    let mut server = MemoryServer::default();
    let [mut original, mut other] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    original.write("INSERT INTO t (v) VALUES ('before the copy')").unwrap();
    push_is_lost(&original, &mut server);
    original.write("INSERT INTO t (v) VALUES ('not even stamped')").unwrap();
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    copy.clock_ms = original.clock_ms;
    original.write("INSERT INTO t (v) VALUES ('of the original')").unwrap();
    copy.write("INSERT INTO t (v) VALUES ('of the copy')").unwrap();
    for device in [&original, &copy, &original] {
        device.sync(&mut server);
    }
    other.write("INSERT INTO t (v) VALUES ('of another')").unwrap();
    for device in [&other, &copy, &original] {
        assert!(device.sync(&mut server).in_sync);
    }
    for device in [&original, &copy, &other] {
        let rows = device.texts("SELECT v FROM t ORDER BY id");
        assert_eq!(rows.iter().filter(|v| *v == "before the copy").count(), 1, "{rows:?}");
        for v in ["not even stamped", "of the original", "of the copy", "of another"] {
            assert!(rows.iter().any(|found| found == v), "{v}: {rows:?}");
        }
    }
}

/// The server has the row from the copy, so this file is no longer the only one that assigned its
/// key.
#[test]
fn a_row_that_a_copied_file_has_sent_is_not_renumbered_when_another_device_edits_it() {
    let mut server = MemoryServer::default();
    let [mut original, mut other] = [0, 1].map(|_| TestDevice::tracked(PLAIN, &mut server));
    original.write("INSERT INTO t (v) VALUES ('before the copy')").unwrap();
    push_is_lost(&original, &mut server);
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let copy = TestDevice::open(&path);
    for device in [&copy, &other] {
        device.sync(&mut server);
    }
    push_is_lost(&original, &mut server);
    other.clock_ms += 5;
    other.write("UPDATE t SET v = 'edited' WHERE v = 'before the copy'").unwrap();
    other.sync(&mut server);
    assert_eq!(original.sync(&mut server).renumbered_rows, []);
    for device in [&copy, &other, &original] {
        device.sync(&mut server);
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1edited"]);
    }
}

/// Syncs `device` so that its changes get timestamps, but the server has none of them.
fn push_is_lost(device: &TestDevice, server: &mut MemoryServer) {
    let before = server.messages.len();
    server.lose_answer = Some(server.requests + 2);
    device.try_sync(server, false).unwrap_err();
    server.messages.truncate(before);
}

#[derive(Clone, Debug)]
enum AutoKeyStep {
    AddBook,
    /// Adds an existing tag to a product.
    Edit(usize),
    DeleteQuote(usize),
    Sync,
}

fn any_step() -> impl Strategy<Value = (usize, AutoKeyStep)> {
    let step = prop_oneof![
        3 => Just(AutoKeyStep::AddBook),
        2 => any::<usize>().prop_map(AutoKeyStep::Edit),
        1 => any::<usize>().prop_map(AutoKeyStep::DeleteQuote),
        2 => Just(AutoKeyStep::Sync),
    ];
    (0_usize..3, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No row is lost, and each keeps its meaning.
    #[test]
    fn three_devices_that_count_lose_nothing(
        steps in prop::collection::vec(any_step(), 1..40),
        phrase in any::<bool>(),
    ) {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(SHOP, &mut server));
        if phrase {
            let phrase = devices[0].replica().create_recovery_phrase().unwrap();
            for device in &devices[1..] {
                device.replica().set_recovery_phrase(&phrase).unwrap();
                device.replica().confirm_new_account().unwrap();
            }
        }
        let mut expected = BTreeSet::new();
        for (number, (place, step)) in steps.into_iter().enumerate() {
            let device = &mut devices[place];
            match step {
                AutoKeyStep::AddBook => {
                    let name = format!("book {number}");
                    add_book(device, &name);
                    expected.extend(meaning_of_book(&name));
                }
                AutoKeyStep::Edit(which) => {
                    let names = device.texts("SELECT name FROM product WHERE note IS NULL");
                    let tags = device.texts("SELECT name FROM tag ORDER BY name");
                    let (Some(name), Some(tag)) = (pick(&names, which), pick(&tags, which)) else {
                        continue;
                    };
                    let is_new = expected.insert(format!("{name} is {tag}"));
                    let of = format!("FROM product p, tag t WHERE p.name = '{name}' AND t.name = '{tag}'");
                    if is_new {
                        let columns = "product_tags (product_id, tag_id)";
                        device.write(&format!("INSERT INTO {columns} SELECT p.id, t.id {of}")).unwrap();
                    }
                }
                AutoKeyStep::DeleteQuote(which) => {
                    let words = device.texts("SELECT words FROM quote");
                    if let Some(words) = pick(&words, which) {
                        device.write(&format!("DELETE FROM quote WHERE words = '{words}'")).unwrap();
                        expected.retain(|line| !line.ends_with(&format!("says {words}")));
                    }
                }
                AutoKeyStep::Sync => drop(device.sync(&mut server)),
            }
        }
        for device in [0, 1, 2, 0, 1] {
            prop_assert!(devices[device].sync(&mut server).in_sync);
        }
        let expected: Vec<_> = expected.into_iter().collect();
        for device in &devices {
            prop_assert_eq!(&device.texts(MEANING), &expected);
            prop_assert_eq!(device.violations(), 0);
            prop_assert_eq!(dump(&device.app), dump(&devices[0].app));
        }
    }
}

fn pick(texts: &[String], which: usize) -> Option<&String> {
    texts.get(which.checked_rem(texts.len())?)
}

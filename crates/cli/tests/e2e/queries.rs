//! Tests of `warren doctor --queries`: the logs that Django and SQLAlchemy write themselves, and
//! the advice for them.

use std::process::Command;

use serde_json::Value;

use crate::fixture::SyncFixture;
use crate::processes::{CommandOutput, python, warren};

/// A program that creates the tables and queries them, with debug logging set up as in Django's
/// documentation.
const DJANGO: &str = r#"
import logging, sys
import django
from django.conf import settings
file, log = sys.argv[1:]
settings.configure(DEBUG=True, DATABASES={'default': {
    'ENGINE': 'django.db.backends.sqlite3', 'NAME': file}})
django.setup()
from django.db import connection, models, transaction
class Item(models.Model):
    owner = models.IntegerField()
    title = models.TextField()
    class Meta:
        app_label = 'app'
with connection.schema_editor() as editor:
    editor.create_model(Item)
Item.objects.bulk_create(Item(owner=i % 300, title="it's (0.5) " + str(i)) for i in range(3000))
handler = logging.FileHandler(log)
handler.setFormatter(logging.Formatter('%(asctime)s %(levelname)s %(message)s'))
logger = logging.getLogger('django.db.backends')
logger.setLevel(logging.DEBUG)
logger.handlers = [handler]
for owner in range(40):
    with transaction.atomic():
        list(Item.objects.filter(owner=owner).order_by('-id')[:3])
Item.objects.filter(title="it's (0.5) 7").count()
"#;

const SQLALCHEMY: &str = r#"
import logging, sys
from sqlalchemy import Integer, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column
file, log = sys.argv[1:]
class Base(DeclarativeBase):
    pass
class Item(Base):
    __tablename__ = 'item'
    id = mapped_column(Integer, primary_key=True)
    owner = mapped_column(Integer)
    title = mapped_column(String)
engine = create_engine('sqlite:///' + file)
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all(Item(owner=i % 300, title=f"it's {i}") for i in range(3000))
    session.commit()
logging.basicConfig(filename=log, format='%(asctime)s %(levelname)s %(name)s %(message)s')
logging.getLogger('sqlalchemy.engine').setLevel(logging.INFO)
for owner in range(40):
    with Session(engine) as session:
        list(session.scalars(select(Item).where(Item.owner == owner, Item.title != "it's")))
with Session(engine) as session:
    session.add_all(Item(owner=1, title="new") for i in range(20))
    session.commit()
"#;

/// Runs the program on a new file. Returns the report on that file with its log.
fn report(program: &str) -> Value {
    let place = SyncFixture::new();
    let (file, log) = (place.at("app.db"), place.at("app.log"));
    let ran = Command::new(python()).args(["-c", program, &file, &log]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = warren(&["doctor", &file, "--queries", &log, "--time-limit", "120", "--json"]);
    assert_eq!(ran.status.code(), Some(3));
    ran.value()
}

fn fixes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    let found = findings.filter(|finding| finding["code"] == "query_index_missing");
    found.map(|finding| finding["fix"]["text"].as_str().unwrap()).collect()
}

#[test]
fn the_log_of_django_gets_its_index() {
    let report = report(DJANGO);
    let load = &report["workload"];
    assert_eq!(load["timed"], true, "{load}");
    assert_eq!(
        (&load["statements_count"], &load["shapes_count"]),
        (&41.into(), &2.into()),
        "{load}"
    );
    assert_eq!(load["rejected"], Value::Array(vec![]));
    assert_eq!(load["unread_lines_count"], 0);
    let fixes = fixes(&report);
    assert!(fixes.contains(&"CREATE INDEX app_item_owner ON app_item (owner);"), "{fixes:?}");
}

#[test]
fn the_log_of_sqlalchemy_gets_its_index() {
    let report = report(SQLALCHEMY);
    let load = &report["workload"];
    assert_eq!((&load["timed"], &load["rejected"]), (&false.into(), &Value::Array(vec![])));
    let calls = |start: &str| -> u64 {
        let queries = load["queries"].as_array().unwrap().iter();
        let of = queries.filter(|query| query["shape"].as_str().unwrap().starts_with(start));
        of.map(|query| query["calls_count"].as_u64().unwrap()).sum()
    };
    assert_eq!(calls("SELECT item.id"), 40, "{load}");
    assert!(calls("INSERT INTO item") > 0, "{load}");
    // The index also has the title, if that halves the work.
    let fixes = fixes(&report);
    assert_eq!(fixes.len(), 1, "{fixes:?}");
    assert!(fixes[0].starts_with("CREATE INDEX item_owner"), "{fixes:?}");
}

#[test]
fn a_log_comes_from_the_standard_input_and_one_without_statements_is_refused() {
    let place = SyncFixture::new();
    let file = place.chinook("a.db");
    let log = place.write("none.log", "GET / 200\nSomething else\n");
    warren(&["doctor", &file, "--queries", &log, "--json"]).refused("invalid_file");
    warren(&["doctor", &file, "--queries", &place.at("nowhere"), "--json"])
        .refused("file_not_found");

    let shell = format!(
        "printf 'select * from Track where Composer = %s;\\n' \"'a'\" \"'b'\" | {} doctor {file} --queries -",
        env!("CARGO_BIN_EXE_warren")
    );
    let ran = Command::new("sh").args(["-c", &shell]).output().unwrap();
    let text = CommandOutput::new(ran).stdout;
    assert!(text.contains("workload: 2 statements of 1 shape;"), "{text}");
    assert!(text.contains("CREATE INDEX Track_Composer ON Track (Composer);"), "{text}");
}

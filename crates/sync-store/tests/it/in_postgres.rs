//! Tests of vaults in PostgreSQL: readable data, lost connections, changes by hand, installation.

use accounts::{DeviceId, VaultId};
use crdt::UnsealError;
use engine::DatabaseKey;
use postgres_lab::PostgresServer;
use sync_store::{Error, PostgresDatabase, Vault, VaultDevice, VaultLocation, Vaults};
use tokio_postgres::Client as Connection;

use crate::fixture::{SHARDS, in_database, plproxy, postgres, proxy, server};
use crate::{message, messages, store as push, timestamp};

/// Creates a database and returns a connection to it.
pub(crate) async fn database(name: &str) -> Connection {
    let device = server().connect("postgres").await.unwrap();
    device.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    server().connect(name).await.unwrap()
}

pub(crate) async fn number(device: &Connection, sql: &str) -> i64 {
    device.query_one(sql, &[]).await.unwrap().get(0)
}

/// Returns a vault in the tests' database, its id as SQL, and a connection for changes by hand.
pub(crate) async fn by_hand(key: &DatabaseKey) -> (Vault, String, Connection) {
    let id = VaultId::generate();
    let vault = postgres().await.vaults.open_with::<Error>(&id, || Ok(key.clone())).unwrap();
    (vault, format!("'{id}'::uuid"), server().connect("postgres").await.unwrap())
}

#[tokio::test]
async fn sessions_at_once_meet_no_deadlock() {
    let device = database("sessions").await;
    for _ in 0..3 {
        messages::sessions_at_once_count_every_timestamp_once(&in_database("sessions").await).await;
    }
    // A deadlock or a failed serialization would also have refused a push.
    let sql = "SELECT deadlocks + xact_rollback FROM pg_stat_database WHERE datname = 'sessions'";
    assert_eq!(number(&device, sql).await, 0);
}

/// Runs a request of about a second, and another one that has the same messages in the other order
/// of chunks.
#[tokio::test]
async fn requests_of_several_chunks_meet_no_deadlock() {
    let fixture = in_database("postgres").await;
    let vault = fixture.vault();
    let of = |range: std::ops::Range<u64>| {
        range.map(|n| message(n << 20, &n.to_string())).collect::<Vec<_>>()
    };
    let (whole, upper, lower) = (of(0..25_000), of(12_000..30_000), of(0..12_000));
    let (a, b, c) = tokio::join!(push(&vault, whole), push(&vault, upper), push(&vault, lower));
    let stored = a.unwrap().stored + b.unwrap().stored + c.unwrap().stored;
    assert_eq!(stored, 30_000);
    assert_eq!(vault.summary().await.unwrap().cursor, 30_000);
    assert!(vault.verify().await.unwrap().is_equal());
    let (mut cursor, mut found) = (0, Vec::new());
    while found.len() < 30_000 {
        let page = vault.page(cursor, 7_001, 1 << 30, None).await.unwrap();
        found.extend(page.messages.into_iter().map(|message| message.timestamp));
        assert_eq!(page.cursor, found.len() as u64);
        cursor = page.cursor;
    }
    found.sort_unstable();
    assert!(found.is_sorted_by(|a, b| a < b), "each once");
}

#[tokio::test]
async fn killed_connections_lose_and_double_nothing() {
    const MESSAGES: u64 = 600;
    let device = database("killing").await;
    let fixture = in_database("killing").await;
    let vault = fixture.vault();
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM (
        SELECT pid FROM pg_stat_activity WHERE datname = 'killing' AND pid <> pg_backend_pid()
        ORDER BY random() LIMIT 2) AS victims";
    let session = |session: u64| {
        let (vault, device) = (Vault::clone(&vault), &device);
        async move {
            let (mut stored, mut lost) = (0, 0);
            for step in 0..12 {
                let first = (session * 5 + step * 3) * 20;
                let batch = || (first..first + 60).map(|n| message((n % MESSAGES) << 24, "same"));
                // Push blindly again, until it is acknowledged.
                let acknowledged = loop {
                    let (pushed, _) =
                        tokio::join!(push(&vault, batch().collect()), number(device, kill));
                    match pushed {
                        Ok(pushed) => break pushed,
                        Err(Error::Unavailable(_)) => lost += 1,
                        Err(error) => panic!("{error}"),
                    }
                    assert!(lost < 500, "no push gets through");
                };
                stored += acknowledged.stored;
            }
            (stored, lost)
        }
    };
    let sessions = tokio::join!(session(0), session(1), session(2), session(3));
    let (stored, lost) = [sessions.0, sessions.1, sessions.2, sessions.3]
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(lost > 10, "only {lost} pushes were interrupted");
    let state = again(|| vault.summary()).await;
    // Messages that were stored but not acknowledged were known at the next attempt.
    assert!(state.cursor >= stored, "{state:?}, {stored} acknowledged as new");
    let (whole, count) = (again(|| vault.page(0, 1_000, 1 << 20, None)).await, state.cursor);
    assert_eq!((whole.messages.len() as u64, whole.more), (count, false));
    let expected: std::collections::BTreeSet<_> = (0..4u64)
        .flat_map(|session| (0..12).map(move |step| (session * 5 + step * 3) * 20))
        .flat_map(|first| (first..first + 60).map(|n| timestamp((n % MESSAGES) << 24)))
        .collect();
    let found: std::collections::BTreeSet<_> =
        whole.messages.iter().map(|message| message.timestamp).collect();
    assert_eq!((found.len() as u64, found), (count, expected));
    assert!(vault.verify().await.unwrap().is_equal());
}

/// Calls until the connection is not one of those that were killed last.
async fn again<T, F: Future<Output = sync_store::Result<T>>>(call: impl Fn() -> F) -> T {
    for _ in 0..20 {
        if let Ok(value) = call().await {
            return value;
        }
    }
    call().await.unwrap()
}

#[tokio::test]
async fn the_database_shows_no_content_and_no_name() {
    let (vault, id, client) = by_hand(&DatabaseKey::generate()).await;
    let device_id = DeviceId::generate();
    let device = VaultDevice {
        id: device_id,
        name: "SECRETNAME".to_owned(),
        node_id: None,
        cursor: 0,
        unsent_count: 0,
        last_seen_ms: 0,
        created_ms: 1,
    };
    vault.add_device(device.clone()).await.unwrap();
    push(&vault, (0..50).map(|millis| message(millis, "SECRETCONTENT")).collect()).await.unwrap();
    let sealed = format!(
        "SELECT count(*) FROM (SELECT content FROM warren.message WHERE vault_id = {id}
         UNION ALL SELECT name FROM warren.device WHERE vault_id = {id}) AS all_of_it (bytes)"
    );
    assert_eq!(number(&client, &sealed).await, 51);
    assert_eq!(
        number(&client, &(sealed + " WHERE position('SECRET'::bytea IN bytes) > 0")).await,
        0
    );
    assert_eq!(vault.devices().await.unwrap(), [device]);
    let status = vault.status().await.unwrap();
    let VaultLocation::Postgres { address, database, tables_bytes, .. } = status.storage else {
        panic!("not in PostgreSQL")
    };
    assert_eq!((address.starts_with("127.0.0.1:"), &database[..]), (true, "postgres"));
    assert!(tables_bytes > 8_192 && !address.contains('@'), "{address}");
}

#[tokio::test]
async fn another_key_opens_no_content() {
    let (vault, id, _) = by_hand(&DatabaseKey::generate()).await;
    push(&vault, vec![message(1, "a")]).await.unwrap();
    let id: VaultId = id.replace("::uuid", "").trim_matches('\'').parse().unwrap();
    let fixture = postgres().await;
    let other = fixture.vaults.open_with::<Error>(&id, || Ok(DatabaseKey::generate())).unwrap();
    let error = other.page(0, 10, 1_000, None).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { source: UnsealError::WrongKey, .. }), "{error}");
    fixture.vaults.remove(&id).await.unwrap();
    assert_eq!(vault.summary().await.unwrap(), sync_store::VaultSummary::default());
    assert_eq!(vault.windows().await.unwrap(), []);
    fixture.vaults.remove(&id).await.unwrap();
}

#[tokio::test]
async fn who_changes_messages_by_hand_leaves_a_vault_that_knows_it() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    push(&vault, (0..9).map(|millis| message(millis, "content")).collect()).await.unwrap();
    for (nth, count) in [(3, 8), (8, 7)] {
        let before = vault.summary().await.unwrap();
        let stamp = timestamp(nth).to_bytes();
        let sql = format!("DELETE FROM warren.message WHERE vault_id = {id} AND timestamp = $1");
        assert_eq!(device.execute(&sql, &[&&stamp[..]]).await.unwrap(), 1);
        let after = vault.summary().await.unwrap();
        assert_ne!(after.fingerprint, before.fingerprint);
        assert_eq!((after.fingerprint.count, after.cursor), (count, 9));
        assert!(vault.verify().await.unwrap().is_equal());
    }
    // Pages skip deleted messages, and no sequence number is used twice.
    let page = vault.page(3, 1, 1_000, None).await.unwrap();
    assert_eq!(
        (&page.messages[..], page.cursor, page.more),
        (&[message(4, "content")][..], 5, true)
    );
    let page = vault.page(8, 1, 1_000, None).await.unwrap();
    assert_eq!((&page.messages[..], page.cursor, page.more), (&[][..], 9, false));
    let after = push(&vault, vec![message(8, "content")]).await.unwrap().after;
    assert_eq!((after.cursor, after.fingerprint.count), (10, 8));
}

#[tokio::test]
async fn a_content_that_does_not_open_is_found_dropped_and_taken_again() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    let all: Vec<_> = (0..9).map(|millis| message(millis << 30, "content")).collect();
    push(&vault, all.clone()).await.unwrap();
    let before = (vault.summary().await.unwrap(), vault.windows().await.unwrap());
    let sql = format!(
        "UPDATE warren.message SET content = content || '\\x00' WHERE vault_id = {id}
         AND timestamp = $1"
    );
    device.execute(&sql, &[&&all[4].timestamp.to_bytes()[..]]).await.unwrap();
    let error = vault.page(0, 100, 1 << 20, None).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    let found = vault.verify().await.unwrap();
    assert_eq!((found.windows_wrong, found.computed.fingerprint.count), (1, 8), "{found:?}");
    vault.rebuild().await.unwrap();
    assert!(vault.verify().await.unwrap().is_equal());
    assert_eq!(vault.summary().await.unwrap().fingerprint.count, 8);
    assert_eq!(push(&vault, all).await.unwrap().stored, 1);
    let state = vault.summary().await.unwrap();
    assert_eq!((state.fingerprint, state.bytes, state.cursor), (before.0.fingerprint, 63, 10));
    assert_eq!(vault.windows().await.unwrap(), before.1);
}

#[tokio::test]
async fn hashes_and_windows_that_were_changed_by_hand_are_found_and_made_anew() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    push(&vault, (0..9).map(|n| message(n << 30, "content")).collect()).await.unwrap();
    let before = (vault.summary().await.unwrap(), vault.windows().await.unwrap());
    for sql in [
        "UPDATE warren.fingerprint_window SET lane2 = lane2 + 1 WHERE window_id = 3 AND",
        "DELETE FROM warren.fingerprint_window WHERE window_id = 4 AND",
        "UPDATE warren.message SET hash_low = 1, content_bytes = 3
         WHERE warren.window_of(timestamp) = 5 AND",
    ] {
        device.batch_execute(&format!("{sql} vault_id = {id}")).await.unwrap();
        let found = vault.verify().await.unwrap();
        assert!(!found.is_equal() && found.windows_wrong == 1, "{sql}: {found:?}");
        vault.rebuild().await.unwrap();
        assert!(vault.verify().await.unwrap().is_equal(), "{sql}");
        assert_eq!(
            (vault.summary().await.unwrap(), vault.windows().await.unwrap()),
            before,
            "{sql}"
        );
    }
    // Reading only the windows returns the right ones, too.
    let sql = "UPDATE warren.fingerprint_window SET messages_count = messages_count + 1
               WHERE window_id = 3 AND vault_id =";
    device.batch_execute(&format!("{sql} {id}")).await.unwrap();
    assert_eq!(vault.windows().await.unwrap(), before.1);
    assert!(vault.verify().await.unwrap().is_equal());
}

#[tokio::test]
async fn shards_have_a_vault_each_in_one_place() {
    let fixture = plproxy().await;
    for _ in 0..40 {
        push(&fixture.vault(), vec![message(1, "a")]).await.unwrap();
    }
    let mut counts = Vec::new();
    for (own, shard) in SHARDS.into_iter().enumerate() {
        let device = server().connect(shard).await.unwrap();
        counts.push(number(&device, "SELECT count(*) FROM warren.vault_summary").await);
        let sql = format!(
            "SELECT count(*) FROM warren.message WHERE hashtext(vault_id::text) & 1 <> {own}"
        );
        assert_eq!(number(&device, &sql).await, 0, "{shard}");
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[tokio::test]
async fn servers_that_start_at_once_install_once() {
    let device = database("at_once").await;
    let url = server().url("at_once");
    let start = || async { PostgresDatabase::connect(&url).await.map(drop) };
    let started = tokio::join!(start(), start(), start(), start());
    for started in [started.0, started.1, started.2, started.3] {
        started.unwrap();
    }
    device.batch_execute("UPDATE warren.schema_version SET version = 99").await.unwrap();
    let error = start().await.unwrap_err();
    assert!(matches!(error, Error::PostgresSchema(_)), "{error}");
}

#[tokio::test]
async fn a_schema_of_an_older_version_is_refused_and_stays() {
    let device = database("older_version").await;
    in_database("older_version").await;
    device.batch_execute("UPDATE warren.schema_version SET version = 5").await.unwrap();
    let refused = PostgresDatabase::connect(&server().url("older_version")).await.err().unwrap();
    let expected = "cannot use the PostgreSQL schema: it has version 5, but version 6 is required: \
                    drop the schema `warren` with all its vaults, or use another database";
    assert_eq!(refused.to_string(), expected);
    let refused = device.batch_execute(&sync_store::schema_sql()).await.unwrap_err();
    let expected = "the schema warren has version 5, and version 6 is needed";
    assert_eq!(refused.as_db_error().unwrap().message(), expected);
    device.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(number(&device, "SELECT warren.version()::bigint").await, 5);
}

#[tokio::test]
async fn a_role_without_rights_on_tables_is_enough_once_the_schema_is_there() {
    let device = database("roles").await;
    device.batch_execute("CREATE ROLE carrier LOGIN PASSWORD 'carrier'").await.unwrap();
    let url = server().url("roles");
    let (start, end) = (url.find("//").unwrap() + 2, url.find('@').unwrap());
    let url = format!("{}carrier:carrier{}", &url[..start], &url[end..]);
    let error = PostgresDatabase::connect(&url).await.err().unwrap();
    assert!(matches!(error, Error::PostgresSchema(_)), "{error}");
    device.batch_execute(&sync_store::schema_sql()).await.unwrap();
    device.batch_execute("GRANT USAGE ON SCHEMA warren TO carrier").await.unwrap();
    let vaults = Vaults::Postgres(PostgresDatabase::connect(&url).await.unwrap());
    let id = VaultId::generate();
    let vault = vaults.open_with::<Error>(&id, || Ok(DatabaseKey::generate())).unwrap();
    push(&vault, vec![message(1, "a")]).await.unwrap();
    assert_eq!(vault.page(0, 9, 9, None).await.unwrap().messages, [message(1, "a")]);
    device.batch_execute("SET ROLE carrier").await.unwrap();
    let refused = device.query("SELECT FROM warren.message", &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable() {
    let own = std::thread::spawn(|| PostgresServer::start_temporary(&[])).join().unwrap().unwrap();
    let postgres = PostgresDatabase::connect(&own.url("postgres")).await.unwrap();
    let vaults = Vaults::Postgres(postgres);
    let id = VaultId::generate();
    let vault = vaults.open_with::<Error>(&id, || Ok(DatabaseKey::generate())).unwrap();
    push(&vault, vec![message(1, "a")]).await.unwrap();
    proxy("proxy_of_gone", [(&own, "postgres"), (&own, "postgres")]).await;
    let proxied = in_database("proxy_of_gone").await.vault();
    push(&proxied, vec![message(1, "a")]).await.unwrap();
    let url = own.url("postgres");
    drop(own);
    for vault in [&vault, &proxied, &vault, &proxied] {
        let error = push(vault, vec![message(2, "b")]).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
    let error = PostgresDatabase::connect(&url).await.err().unwrap();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    for url in ["postgres://u:SECRET@h/d?sslmode=sometimes", "nonsense"] {
        let error = PostgresDatabase::connect(url).await.err().unwrap();
        assert!(matches!(error, Error::PostgresUrl(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("SECRET"));
    }
}

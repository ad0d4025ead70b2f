//! Tests of gateways in PostgreSQL: sealed data, several servers at a time, changes by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use accounts::VaultId;
use bytes::Bytes;
use crdt::UnsealError;
use engine::DatabaseKey;
use sync_store::{BlobChunkId, BlobId, Error, ExchangeOutcome, MessageBatch, UpdateStateFn, Vault};
use tokio_postgres::Client as Connection;

use crate::fixture::{in_database, postgres};
use crate::gateway::{count, counting, exchange};
use crate::in_postgres::{by_hand, database, number};
use crate::{message, store as push};

/// Returns one vault, opened by this many servers.
async fn servers(name: &str, count: usize) -> Vec<Vault> {
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let mut opened = Vec::new();
    for _ in 0..count {
        let vaults = in_database(name).await.vaults;
        opened.push(vaults.open_with::<Error>(&id, || Ok(key.clone())).unwrap());
    }
    opened
}

/// Runs twelve tasks that exchange overlapping messages, ten times each: every message is counted
/// once. Returns how often a state was computed.
async fn exchange_at_once(servers: &[Vault]) -> u64 {
    let amended = Arc::new(AtomicU64::new(0));
    let task = |vault: &Vault, task: u64| {
        let (vault, amended) = (Vault::clone(vault), Arc::clone(&amended));
        async move {
            let mut stored = 0;
            for step in 0..10 {
                let first = (task * 3 + step * 5) * 4;
                let batch = (first..first + 12).map(|n| message(n << 28, "content")).collect();
                let amended = Arc::clone(&amended);
                let update: UpdateStateFn = Arc::new(move |record, timestamps| {
                    amended.fetch_add(1, Ordering::Relaxed);
                    counting()(record, timestamps)
                });
                stored += vault
                    .exchange(MessageBatch::new_keeping_first(batch), update)
                    .await
                    .unwrap()
                    .stored;
            }
            stored
        }
    };
    let vaults = servers.iter().cycle().zip(0..12);
    let tasks: Vec<_> = vaults.map(|(vault, number)| tokio::spawn(task(vault, number))).collect();
    let mut stored = 0;
    for task in tasks {
        stored += task.await.unwrap();
    }
    let (state, recorded) =
        (servers[0].summary().await.unwrap(), servers[0].gateway_state().await.unwrap());
    assert_eq!((state.fingerprint.count, state.cursor), (stored, stored));
    assert_eq!((count(&recorded.state) as u64, recorded.cursor), (stored, stored));
    assert!(servers[0].verify().await.unwrap().is_equal());
    amended.load(Ordering::Relaxed)
}

#[tokio::test]
async fn exchanges_of_several_servers_lose_nothing() {
    database("exchanges").await;
    exchange_at_once(&servers("exchanges", 4).await).await;
}

#[tokio::test]
async fn exchanges_of_one_server_take_turns() {
    assert_eq!(exchange_at_once(&[postgres().await.vault()]).await, 120);
}

/// Returns an update like [`counting`] that first runs `disturb`.
fn disturbed<F: Future<Output = ()>>(
    disturb: impl Fn() -> F + Send + Sync + 'static,
) -> UpdateStateFn {
    let runtime = tokio::runtime::Handle::current();
    Arc::new(move |record, timestamps| {
        runtime.block_on(disturb());
        counting()(record, timestamps)
    })
}

#[tokio::test]
async fn a_timestamp_that_becomes_known_meanwhile_is_not_counted() {
    database("meanwhile").await;
    let servers = servers("meanwhile", 2).await;
    let other = Vault::clone(&servers[1]);
    let update = disturbed(move || {
        let other = Vault::clone(&other);
        async move { push(&other, vec![message(2, "b")]).await.map(drop).unwrap() }
    });
    let batch = MessageBatch::new_keeping_first(vec![
        message(1, "a"),
        message(2, "another"),
        message(3, "c"),
    ]);
    let answer = servers[0].exchange(batch, update).await.unwrap();
    let record = Bytes::from_static(b"2");
    assert_eq!(answer, ExchangeOutcome { cursor: 1, stored: 2, state: record });
    assert_eq!(servers[1].summary().await.unwrap().cursor, 3);
    assert!(servers[0].verify().await.unwrap().is_equal());
}

#[tokio::test]
async fn a_record_that_changes_all_the_time_is_busy() {
    database("busy").await;
    let servers = servers("busy", 2).await;
    let other = Vault::clone(&servers[1]);
    let update = disturbed(move || {
        let other = Vault::clone(&other);
        async move {
            let grow: UpdateStateFn =
                Arc::new(|record, _| Ok((count(record) + 1).to_string().into()));
            other.exchange(MessageBatch::default(), grow).await.map(drop).unwrap();
        }
    });
    let batch = MessageBatch::new_keeping_first(vec![message(1, "a")]);
    let error = servers[0].exchange(batch, update).await.unwrap_err();
    assert!(matches!(error, Error::Busy(_)), "{error}");
    assert_eq!(servers[0].summary().await.unwrap().cursor, 0);
    assert!(count(&servers[0].gateway_state().await.unwrap().state) > 10);
}

/// This also holds for a vault without a row: a message that is stored between two steps of
/// clearing would lose its window, and would not be counted.
#[tokio::test]
async fn who_makes_a_vault_anew_keeps_everybody_from_adding() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    let lock = format!("BEGIN; SELECT warren.lock_vault({id})");
    device.batch_execute(&lock).await.unwrap();
    let adding = tokio::spawn(async move { push(&vault, vec![message(1, "a")]).await });
    let waits = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND objid = (hashtextextended({id}::text, 0) & 4294967295)::oid"
    );
    while number(&device, &waits).await == 0 {
        assert!(!adding.is_finished(), "it did not wait");
        tokio::task::yield_now().await;
    }
    device.batch_execute("COMMIT").await.unwrap();
    assert_eq!(adding.await.unwrap().unwrap().stored, 1);
}

/// A deadlock would refuse one of them.
#[tokio::test]
async fn exchanges_clears_and_stores_at_once_meet_no_deadlock() {
    const STEPS: u64 = 25;
    database("clears").await;
    let servers = servers("clears", 3).await;
    let of =
        |step: u64| (step..step + 300).map(|n| message((n * 31 % 997) << 26, "same")).collect();
    let exchanges = async {
        for step in 0..STEPS {
            exchange(&servers[0], of(step * 40)).await;
        }
    };
    let clears = async {
        for _ in 0..STEPS {
            servers[1].clear(Arc::new(|_, _| Ok(b"0".to_vec()))).await.unwrap();
            // This holds at every moment.
            assert!(servers[1].verify().await.unwrap().is_equal());
        }
    };
    let stores = async {
        for step in 0..STEPS {
            push(&servers[2], of(step * 30)).await.unwrap();
        }
    };
    tokio::join!(exchanges, clears, stores);
    assert!(servers[0].verify().await.unwrap().is_equal());
    let before = servers[0].summary().await.unwrap().cursor;
    assert_eq!(push(&servers[0], vec![message(1, "new")]).await.unwrap().after.cursor, before + 1);
}

#[tokio::test]
async fn the_database_shows_neither_state_nor_chunk() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    let chunk = BlobChunkId { blob: BlobId::generate(), number: 0 };
    vault.put_chunk(chunk, Bytes::from_static(b"SECRET chunk")).await.unwrap();
    let update: UpdateStateFn = Arc::new(|_, _| Ok(b"SECRET state".to_vec()));
    vault.exchange(MessageBatch::default(), update).await.unwrap();
    let sealed = format!(
        "SELECT count(*) FROM (SELECT content FROM warren.gateway_state WHERE vault_id = {id}
         UNION ALL SELECT content FROM warren.blob_chunk WHERE vault_id = {id})
         AS all_of_it (bytes)"
    );
    assert_eq!(number(&device, &sealed).await, 2);
    assert_eq!(
        number(&device, &(sealed + " WHERE position('SECRET'::bytea IN bytes) > 0")).await,
        0
    );
}

#[tokio::test]
async fn what_is_sealed_opens_in_its_place_alone() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    let blob = BlobId::generate();
    let [one, other] = [0, 1].map(|number| BlobChunkId { blob, number });
    vault.put_chunk(one, Bytes::from_static(b"one")).await.unwrap();
    vault.put_chunk(other, Bytes::from_static(b"other")).await.unwrap();
    exchange(&vault, vec![message(1, "a")]).await;
    let old = state_of(&device, &id).await;
    exchange(&vault, vec![message(2, "a")]).await;
    let set = async |table: &str, sealed: &str| {
        let sql = format!("UPDATE warren.{table} SET content = {sealed} WHERE vault_id = {id}");
        assert!(device.execute(&sql, &[]).await.unwrap() > 0, "{sql}");
    };
    let of_chunk = format!(
        "(SELECT content FROM warren.blob_chunk WHERE vault_id = {id} AND chunk_number = 0)"
    );
    let of_message =
        format!("(SELECT content FROM warren.message WHERE vault_id = {id} ORDER BY 1 LIMIT 1)");

    set("blob_chunk", &of_chunk).await;
    assert_eq!(vault.chunk(one).await.unwrap().unwrap(), "one");
    check_unreadable(&vault.chunk(other).await.unwrap_err(), UnsealError::Replayed);
    set("blob_chunk", &of_message).await;
    check_unreadable(&vault.chunk(one).await.unwrap_err(), UnsealError::WrongKey);
    for (sealed, why) in [
        (format!("'\\x{old}'::bytea"), UnsealError::Replayed),
        (of_chunk, UnsealError::WrongKey),
        (of_message, UnsealError::WrongKey),
        ("set_byte(content, 40, 255 - get_byte(content, 40))".to_owned(), UnsealError::WrongKey),
    ] {
        set("gateway_state", &sealed).await;
        check_unreadable(&vault.gateway_state().await.unwrap_err(), why);
    }
    let answer = vault.exchange(MessageBatch::default(), counting()).await;
    check_unreadable(&answer.unwrap_err(), UnsealError::WrongKey);
}

async fn state_of(device: &Connection, id: &str) -> String {
    let sql =
        format!("SELECT encode(content, 'hex') FROM warren.gateway_state WHERE vault_id = {id}");
    device.query_one(&sql, &[]).await.unwrap().get(0)
}

#[track_caller]
fn check_unreadable(error: &Error, why: UnsealError) {
    assert!(matches!(error, Error::Unreadable { source, .. } if *source == why), "{error}");
}

#[tokio::test]
async fn an_exchange_that_changes_nothing_writes_nothing() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    exchange(&vault, vec![message(1, "a")]).await;
    let written = format!(
        "SELECT g.version + g.xmin::text::bigint + v.xmin::text::bigint
         FROM warren.gateway_state AS g JOIN warren.vault_summary AS v USING (vault_id)
         WHERE vault_id = {id}"
    );
    let before = number(&device, &written).await;
    for messages in [vec![], vec![message(1, "a")], vec![message(1, "sealed anew")]] {
        let answer = exchange(&vault, messages).await;
        assert_eq!((answer.cursor, answer.stored, &answer.state[..]), (1, 0, &b"1"[..]));
        assert_eq!(number(&device, &written).await, before);
    }
    exchange(&vault, vec![message(2, "b")]).await;
    assert!(number(&device, &written).await > before);
}

#[tokio::test]
async fn clearing_is_no_damage() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    exchange(&vault, vec![message(1, "a")]).await;
    vault.clear(counting()).await.unwrap();
    let sql =
        format!("SELECT count(*) FROM warren.vault_summary WHERE NOT stale AND vault_id = {id}");
    assert_eq!(number(&device, &sql).await, 1);
}

#[tokio::test]
async fn a_removed_vault_leaves_no_row() {
    let (vault, id, device) = by_hand(&DatabaseKey::generate()).await;
    let chunk = BlobChunkId { blob: BlobId::generate(), number: 0 };
    vault.put_chunk(chunk, Bytes::new()).await.unwrap();
    exchange(&vault, vec![message(1, "a")]).await;
    let rows = [
        "message",
        "fingerprint_window",
        "vault_summary",
        "sequence_block",
        "device",
        "gateway_state",
        "blob_chunk",
    ]
    .map(|table| format!("SELECT vault_id FROM warren.{table} WHERE vault_id = {id}"));
    let rows = format!("SELECT count(*) FROM ({}) AS rows", rows.join(" UNION ALL "));
    assert_eq!(number(&device, &rows).await, 6);
    let vault: VaultId = id.replace("::uuid", "").trim_matches('\'').parse().unwrap();
    postgres().await.vaults.remove(&vault).await.unwrap();
    assert_eq!(number(&device, &rows).await, 0);
}

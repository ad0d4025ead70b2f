//! The file's single values: who this device is, how far it has synced, where to.

use crdt::{Clock, Fingerprint, Node, Timestamp};
use prost::Message as _;
use protocol::Loss;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql};

use crate::error::Result;

/// The version of `schema.sql` and of what the triggers write.
pub(crate) const FORMAT: i64 = 1;

/// One single value of the file; the names are part of `docs/formats/5-replica.md`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Format,
    Node,
    Clock,
    ClockOff,
    BaselineNext,
    Cursor,
    CursorSet,
    Count,
    Digest,
    Identity,
    Enrol,
    Adopt,
    Server,
    Login,
    ClientId,
    Token,
    DeviceName,
    SyncedMs,
    ServerCount,
    ServerLoss,
    Equal,
    Secret,
    SecretProved,
    SecretGiven,
    NextSecret,
    NextSecretBegins,
    Form,
    AsksForm,
    Scrub,
    #[cfg(not(target_family = "wasm"))]
    Authorities,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Node => "node",
            Self::Clock => "clock",
            Self::ClockOff => "clock_off",
            Self::BaselineNext => "baseline_next",
            Self::Cursor => "cursor",
            Self::CursorSet => "cursor_set",
            Self::Count => "count",
            Self::Digest => "digest",
            Self::Identity => "identity",
            Self::Enrol => "enrol",
            Self::Adopt => "adopt",
            Self::Server => "server",
            Self::Login => "login",
            Self::ClientId => "client_id",
            Self::Token => "token",
            Self::DeviceName => "device_name",
            Self::SyncedMs => "synced_ms",
            Self::ServerCount => "server_count",
            Self::ServerLoss => "server_loss",
            Self::Equal => "equal",
            Self::Secret => "secret",
            Self::SecretProved => "secret_proved",
            Self::SecretGiven => "secret_given",
            Self::NextSecret => "next_secret",
            Self::NextSecretBegins => "next_secret_begins",
            Self::Form => "form",
            Self::AsksForm => "asks_form",
            Self::Scrub => "scrub",
            #[cfg(not(target_family = "wasm"))]
            Self::Authorities => "authorities",
        }
    }
}

pub(crate) fn get<T: FromSql>(db: &Connection, key: Key) -> Result<Option<T>> {
    let mut statement = db.prepare_cached("SELECT value FROM warren_meta WHERE key = ?1")?;
    Ok(statement.query_row([key.name()], |row| row.get(0)).optional()?.flatten())
}

pub(crate) fn set(db: &Connection, key: Key, value: impl ToSql) -> Result<()> {
    let sql = "INSERT INTO warren_meta VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.prepare_cached(sql)?.execute((key.name(), value))?;
    Ok(())
}

pub(crate) fn number(db: &Connection, key: Key) -> Result<u64> {
    Ok(get::<i64>(db, key)?.unwrap_or(0).cast_unsigned())
}

pub(crate) fn set_number(db: &Connection, key: Key, value: u64) -> Result<()> {
    set(db, key, value.cast_signed())
}

/// Notes that everything up to `cursor` of the set `set_id` is here.
pub(crate) fn set_cursor(db: &Connection, set_id: u64, cursor: u64) -> Result<()> {
    set_number(db, Key::CursorSet, set_id)?;
    set_number(db, Key::Cursor, cursor)
}

/// Draws a new node id: at the beginning, and when a file turns out to be a copy.
pub(crate) fn new_node(db: &Connection) -> Result<Node> {
    let node = getrandom::u64().expect("the system gives random numbers");
    set_number(db, Key::Node, node)?;
    Ok(Node(node))
}

pub(crate) fn node(db: &Connection) -> Result<Node> {
    Ok(Node(number(db, Key::Node)?))
}

pub(crate) fn clock(db: &Connection) -> Result<Clock> {
    let last = get::<Vec<u8>>(db, Key::Clock)?;
    let last = last.and_then(|bytes| Timestamp::from_bytes(&bytes).ok());
    Ok(Clock::new(node(db)?, last.unwrap_or(Timestamp::ZERO)))
}

pub(crate) fn set_clock(db: &Connection, clock: &Clock) -> Result<()> {
    set(db, Key::Clock, clock.last().to_bytes().as_slice())
}

pub(crate) fn fingerprint(db: &Connection) -> Result<Fingerprint> {
    let digest = get::<[u8; 16]>(db, Key::Digest)?.unwrap_or_default();
    Ok(Fingerprint { count: number(db, Key::Count)?, digest: u128::from_be_bytes(digest) })
}

pub(crate) fn set_fingerprint(db: &Connection, fingerprint: &Fingerprint) -> Result<()> {
    set_number(db, Key::Count, fingerprint.count)?;
    set(db, Key::Digest, fingerprint.digest_bytes().as_slice())
}

/// What the server has lost, as the last sync heard.
pub(crate) fn server_loss(db: &Connection) -> Result<Option<Loss>> {
    let bytes = get::<Vec<u8>>(db, Key::ServerLoss)?;
    Ok(bytes.and_then(|bytes| Loss::decode(bytes.as_slice()).ok()))
}

pub(crate) fn set_server_loss(db: &Connection, loss: Option<&Loss>) -> Result<()> {
    set(db, Key::ServerLoss, loss.map(Loss::encode_to_vec))
}

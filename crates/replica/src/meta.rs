//! Stores the file's single values: the device's identity, its sync position and its server.

use crdt::{Fingerprint, HybridLogicalClock, NodeId, Timestamp};
use prost::Message as _;
use protocol::ServerLoss;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql};

use crate::error::Result;

/// The version of `schema.sql` and of the rows that the triggers write.
pub(crate) const FORMAT: i64 = 2;

/// The key of a single value of the file; the names are part of
/// `docs/reference/formats/5-replica.md`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReplicaMetaKey {
    Format,
    NodeId,
    Clock,
    ClockOffset,
    BackfillNext,
    Cursor,
    CursorSet,
    MessagesCount,
    Digest,
    Identity,
    RegisterCopy,
    CreateMissing,
    Server,
    Login,
    DeviceId,
    Token,
    DeviceName,
    LastSyncedMs,
    ServerMessagesCount,
    ServerLoss,
    InSync,
    RecoverySecret,
    RecoverySecretVerified,
    RecoverySecretEntered,
    NextRecoverySecret,
    NextSecretEnablesE2ee,
    Encryption,
    AccountUnconfirmed,
    Scrub,
    #[cfg(not(target_family = "wasm"))]
    Authorities,
}

impl ReplicaMetaKey {
    fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::NodeId => "node_id",
            Self::Clock => "clock",
            Self::ClockOffset => "clock_offset_ms",
            Self::BackfillNext => "backfill_next",
            Self::Cursor => "cursor",
            Self::CursorSet => "cursor_set",
            Self::MessagesCount => "messages_count",
            Self::Digest => "digest",
            Self::Identity => "identity",
            Self::RegisterCopy => "register_copy",
            Self::CreateMissing => "create_missing",
            Self::Server => "server",
            Self::Login => "login",
            Self::DeviceId => "device_id",
            Self::Token => "token",
            Self::DeviceName => "device_name",
            Self::LastSyncedMs => "last_synced_ms",
            Self::ServerMessagesCount => "server_messages_count",
            Self::ServerLoss => "server_loss",
            Self::InSync => "in_sync",
            Self::RecoverySecret => "recovery_secret",
            Self::RecoverySecretVerified => "recovery_secret_verified",
            Self::RecoverySecretEntered => "recovery_secret_entered",
            Self::NextRecoverySecret => "next_recovery_secret",
            Self::NextSecretEnablesE2ee => "next_secret_enables_e2ee",
            Self::Encryption => "encryption",
            Self::AccountUnconfirmed => "account_unconfirmed",
            Self::Scrub => "scrub",
            #[cfg(not(target_family = "wasm"))]
            Self::Authorities => "authorities",
        }
    }
}

pub(crate) fn get<T: FromSql>(db: &Connection, key: ReplicaMetaKey) -> Result<Option<T>> {
    let mut statement = db.prepare_cached("SELECT value FROM warren_meta WHERE key = ?1")?;
    Ok(statement.query_row([key.name()], |row| row.get(0)).optional()?.flatten())
}

pub(crate) fn set(db: &Connection, key: ReplicaMetaKey, value: impl ToSql) -> Result<()> {
    let sql = "INSERT INTO warren_meta VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.prepare_cached(sql)?.execute((key.name(), value))?;
    Ok(())
}

pub(crate) fn number(db: &Connection, key: ReplicaMetaKey) -> Result<u64> {
    Ok(get::<i64>(db, key)?.unwrap_or(0).cast_unsigned())
}

pub(crate) fn set_number(db: &Connection, key: ReplicaMetaKey, value: u64) -> Result<()> {
    set(db, key, value.cast_signed())
}

/// Records that the file holds everything up to `cursor` of the set `set_id`.
pub(crate) fn set_cursor(db: &Connection, set_id: u64, cursor: u64) -> Result<()> {
    set_number(db, ReplicaMetaKey::CursorSet, set_id)?;
    set_number(db, ReplicaMetaKey::Cursor, cursor)
}

/// Draws a new node id for a new file, or for one that turns out to be a copy.
pub(crate) fn draw_node_id(db: &Connection) -> Result<NodeId> {
    let node = getrandom::u64().expect("the system gives random numbers");
    set_number(db, ReplicaMetaKey::NodeId, node)?;
    Ok(NodeId(node))
}

pub(crate) fn node_id(db: &Connection) -> Result<NodeId> {
    Ok(NodeId(number(db, ReplicaMetaKey::NodeId)?))
}

pub(crate) fn clock(db: &Connection) -> Result<HybridLogicalClock> {
    let last = get::<Vec<u8>>(db, ReplicaMetaKey::Clock)?;
    let last = last.and_then(|bytes| Timestamp::from_bytes(&bytes).ok());
    Ok(HybridLogicalClock::new(node_id(db)?, last.unwrap_or(Timestamp::ZERO)))
}

pub(crate) fn set_clock(db: &Connection, clock: &HybridLogicalClock) -> Result<()> {
    set(db, ReplicaMetaKey::Clock, clock.last().to_bytes().as_slice())
}

pub(crate) fn fingerprint(db: &Connection) -> Result<Fingerprint> {
    let digest = get::<[u8; 16]>(db, ReplicaMetaKey::Digest)?.unwrap_or_default();
    Ok(Fingerprint {
        count: number(db, ReplicaMetaKey::MessagesCount)?,
        digest: u128::from_be_bytes(digest),
    })
}

pub(crate) fn set_fingerprint(db: &Connection, fingerprint: &Fingerprint) -> Result<()> {
    set_number(db, ReplicaMetaKey::MessagesCount, fingerprint.count)?;
    set(db, ReplicaMetaKey::Digest, fingerprint.digest_bytes().as_slice())
}

/// Returns the loss of messages that the server reported in the last sync.
pub(crate) fn server_loss(db: &Connection) -> Result<Option<ServerLoss>> {
    let bytes = get::<Vec<u8>>(db, ReplicaMetaKey::ServerLoss)?;
    Ok(bytes.and_then(|bytes| ServerLoss::decode(bytes.as_slice()).ok()))
}

pub(crate) fn set_server_loss(db: &Connection, loss: Option<&ServerLoss>) -> Result<()> {
    set(db, ReplicaMetaKey::ServerLoss, loss.map(ServerLoss::encode_to_vec))
}

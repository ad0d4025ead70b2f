//! Reports the state of a replica: its tables, its sync position, and the rows with overrides.

use crdt::{Fingerprint, NodeId};
use protocol::ServerLoss;
use rusqlite::Connection;
use serde::Serialize;
use sqlite_schema::quote_identifier;
use utoipa::ToSchema;

use super::json;
use crate::apply::visibility_override::VisibilityOverrideKind;
use crate::capture::triggers;
use crate::error::{Error, Result};
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::missing_constraints::{self, MissingConstraint};
use crate::schema::schema_conflict::{self, SchemaConflict};
use crate::schema::tracked_table::{DeclaredTable, TrackedTable};
use crate::sql_value::key_to_literals;
use crate::sync::recovery_phrase;
use crate::tracking::schema_change;

/// The state of a replica, determined without contacting the server.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReplicaStatus {
    /// This device's id in timestamps: 16 hex digits.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String, example = "a1b2c3d4e5f60718")]
    pub node_id: NodeId,
    /// The tracked tables.
    pub tables: Vec<TableStatus>,
    /// The number of messages on this device.
    pub messages_count: u64,
    /// The digest of the messages: 32 hex digits. Devices with equal count and digest have the same
    /// messages.
    #[serde(serialize_with = "json::hex128")]
    #[schema(value_type = String, example = "00000000000000000000000000000000")]
    pub digest: u128,
    /// The size of the messages' contents in bytes.
    pub content_bytes: u64,
    /// The number of messages that the server has not acknowledged.
    pub unsent_count: u64,
    /// The number of received messages that are not shown, such as those that cannot be decrypted.
    pub rejected_count: u64,
    /// The number of messages that are not sent, because the server rejects their timestamps as
    /// invalid.
    pub set_aside_count: u64,
    /// Whether the contents are end-to-end encrypted.
    pub e2ee: bool,
    /// The number of changes since the last sync.
    pub pending_count: u64,
    /// The tables that were rebuilt or got columns since the last sync. Not all writes to them were
    /// recorded; the next sync finds the rest.
    pub uncaptured_tables: Vec<String>,
    /// The state of the server at the last sync; null if no server is configured.
    pub remote: Option<RemoteStatus>,
    /// The resurrected and hidden rows (`docs/reference/formats/2-message.md`).
    pub visibility_overrides: Vec<OverriddenRow>,
    /// The tables that could not be the same as on other devices at the last sync.
    pub schema_conflicts: Vec<SchemaConflict>,
    /// The columns and tables that other devices have and this file lacks.
    pub missing_tables: Vec<String>,
    /// The constraints that tables on other devices have and this file lacks. Rows that are shown
    /// here may be hidden there.
    pub missing_constraints: Vec<MissingConstraint>,
}

/// A tracked table.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TableStatus {
    /// The name of the table.
    pub table: String,
    /// The number of rows in the table.
    pub rows_count: u64,
}

/// The state of the server at the last sync.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RemoteStatus {
    /// The address of the server.
    pub server: String,
    /// The login of the account.
    pub login: String,
    /// The id of this device's registration.
    pub device_id: String,
    /// The sequence number up to which this device has all messages of the server.
    pub cursor: u64,
    /// The time of the last sync, in milliseconds since 1970; 0 if the device has never synced.
    pub last_synced_ms: u64,
    /// The number of messages on the server at the last sync.
    pub server_messages_count: u64,
    /// Whether the file and the server were in sync at the last sync.
    pub in_sync: bool,
    /// The messages that the server had lost and not received again by the last sync; null if there
    /// were none.
    pub server_loss: Option<ServerLoss>,
}

/// A deleted row that is visible or a live row that is hidden.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OverriddenRow {
    /// The name of the table.
    pub table: String,
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// The kind of reason why the row is visible or hidden.
    pub kind: VisibilityOverrideKind,
    /// The reason in words.
    pub reason: String,
}

impl ReplicaStatus {
    /// Returns the fingerprint of the messages that this device has.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint { count: self.messages_count, digest: self.digest }
    }
}

impl Replica {
    /// Returns the state of the replica.
    pub fn status(&self) -> Result<ReplicaStatus> {
        let db = &self.db;
        let count = |sql: &str| -> Result<u64> {
            Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
        };
        let mut tables = Vec::new();
        let tracked = TrackedTable::all(db)?;
        for table in &tracked {
            // The rows of a table that lost only a column can still be counted.
            if DeclaredTable::read(db, &table.name)?.is_none()
                && let Some(what) = schema_change::incompatible_change(db, table)?
            {
                return Err(Error::SchemaChanged { table: table.name.clone(), what });
            }
            let rows = count(&format!("SELECT count(*) FROM {}", quote_identifier(&table.name)))?;
            tables.push(TableStatus { table: table.name.clone(), rows_count: rows });
        }
        let Fingerprint { count: messages_count, digest } = meta::fingerprint(db)?;
        Ok(ReplicaStatus {
            node_id: meta::node_id(db)?,
            tables,
            messages_count,
            digest,
            content_bytes: count("SELECT coalesce(sum(length(content)), 0) FROM warren_message")?,
            unsent_count: message_log::unsent_count(db)?,
            rejected_count: message_log::rejected_count(db)?,
            set_aside_count: message_log::set_aside_count(db)?,
            e2ee: recovery_phrase::load(db)?.is_some(),
            pending_count: triggers::pending_count(db)?,
            uncaptured_tables: schema_change::uncaptured_tables(db)?,
            remote: self.remote()?,
            visibility_overrides: self.overridden_rows()?,
            schema_conflicts: schema_conflict::all(db)?,
            missing_tables: unknown(db)?,
            missing_constraints: missing_constraints::missing_constraints(db, &tracked)?,
        })
    }

    /// Returns whether there are received messages that cannot be shown.
    pub fn has_rejected(&self) -> Result<bool> {
        Ok(message_log::rejected_count(&self.db)? > 0)
    }

    /// Returns the state of the server at the last sync, if the file has a server.
    pub fn remote(&self) -> Result<Option<RemoteStatus>> {
        let db = &self.db;
        let Some(server) = meta::get(db, ReplicaMetaKey::Server)? else { return Ok(None) };
        Ok(Some(RemoteStatus {
            server,
            login: meta::get(db, ReplicaMetaKey::Login)?.unwrap_or_default(),
            device_id: meta::get(db, ReplicaMetaKey::DeviceId)?.unwrap_or_default(),
            cursor: meta::number(db, ReplicaMetaKey::Cursor)?,
            last_synced_ms: meta::number(db, ReplicaMetaKey::LastSyncedMs)?,
            server_messages_count: meta::number(db, ReplicaMetaKey::ServerMessagesCount)?,
            in_sync: meta::get(db, ReplicaMetaKey::InSync)?.unwrap_or(false),
            server_loss: meta::server_loss(db)?,
        }))
    }

    fn overridden_rows(&self) -> Result<Vec<OverriddenRow>> {
        let sql = "SELECT table_id, key, kind, reason, name FROM warren_visibility_override
                   JOIN warren_table ON id = table_id ORDER BY table_id, key";
        let mut statement = self.db.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut overridden = Vec::new();
        while let Some(row) = rows.next()? {
            let id = RowId { table: row.get(0)?, key: row.get(1)? };
            let key = key_to_literals(&id.key_values()?);
            let (kind, reason, table) = (row.get_ref(2)?, row.get(3)?, row.get(4)?);
            let kind = VisibilityOverrideKind::read(kind);
            overridden.push(OverriddenRow { table, key, kind, reason });
        }
        Ok(overridden)
    }
}

/// Returns the columns and tables that other devices have and this file lacks.
pub(crate) fn unknown(db: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT name FROM warren_table WHERE tracked = 0
               UNION ALL
               SELECT t.name || '.' || c.name FROM warren_column c JOIN warren_table t ON t.id = c.table_id
               WHERE t.tracked = 1 AND c.position IS NULL AND c.key_position IS NULL";
    let mut statement = db.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

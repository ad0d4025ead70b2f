//! The tables of a mail vault (Format 24).
//!
//! # Invariants
//! - A BLOB is the last column of its table, so that reading the columns before it needs no
//!   overflow page.
//! - A commit writes at least one page of each table and index that it touches, so there is no
//!   index that only rare queries need.
//! - A foreign key is the beginning of an index of its table. Without one, SQLite would read the
//!   whole table for each row of the other table that is deleted. So entries do not refer to
//!   messages with one, nor messages and segments to contents.

use engine::Migration;

/// SQLite's `application_id` of a mail vault: "WARM".
pub const MAIL_APPLICATION_ID: u32 = 0x5741_524D;

/// The id of the mailbox INBOX.
pub(crate) const INBOX_ID: i64 = 1;

/// The id of the row of `mailbox` that is the parent of the mailboxes at the top.
pub(crate) const ROOT_ID: i64 = 0;

pub(crate) const MIGRATIONS: &[Migration] = &[TABLES];

/// The row 0 of `mailbox` is not a mailbox: with it, names at the top are unique, too.
/// `uid_validity` begins with the seconds since 1970, and each mailbox takes the next number.
const TABLES: Migration = Migration {
    version: 1,
    sql: r"
        PRAGMA application_id = 0x5741524D;
        CREATE TABLE mail_state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            modseq INTEGER NOT NULL,
            uid_validity INTEGER NOT NULL,
            last_message_id INTEGER NOT NULL,
            filed_seq INTEGER NOT NULL,
            spool_id BLOB,
            restores_count INTEGER NOT NULL
        ) STRICT;
        INSERT INTO mail_state VALUES (1, 1, unixepoch() + 5, 0, 0, NULL, 0);
        CREATE TABLE mailbox (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            parent_id INTEGER NOT NULL REFERENCES mailbox (id),
            name TEXT NOT NULL,
            uid_validity INTEGER NOT NULL,
            uid_next INTEGER NOT NULL DEFAULT 1,
            modseq INTEGER NOT NULL,
            special_use TEXT UNIQUE,
            is_subscribed INTEGER NOT NULL DEFAULT 1,
            messages_count INTEGER NOT NULL DEFAULT 0,
            unseen_count INTEGER NOT NULL DEFAULT 0,
            messages_bytes INTEGER NOT NULL DEFAULT 0,
            UNIQUE (parent_id, name)
        ) STRICT;
        INSERT INTO mailbox (id, parent_id, name, uid_validity, modseq, special_use) VALUES
            (0, 0, '', 0, 1, NULL),
            (1, 0, 'INBOX', unixepoch(), 1, NULL),
            (2, 0, 'Drafts', unixepoch() + 1, 1, '\Drafts'),
            (3, 0, 'Sent', unixepoch() + 2, 1, '\Sent'),
            (4, 0, 'Trash', unixepoch() + 3, 1, '\Trash'),
            (5, 0, 'Junk', unixepoch() + 4, 1, '\Junk'),
            (6, 0, 'Archive', unixepoch() + 5, 1, '\Archive');
        CREATE TABLE message (
            id INTEGER PRIMARY KEY,
            entries_count INTEGER NOT NULL,
            size INTEGER NOT NULL,
            received_s INTEGER NOT NULL,
            received_zone_min INTEGER NOT NULL,
            sent_s INTEGER,
            has_attachment INTEGER NOT NULL,
            content_id INTEGER,
            parts BLOB NOT NULL,
            headers BLOB NOT NULL
        ) STRICT;
        CREATE TABLE content (
            id INTEGER PRIMARY KEY,
            references_count INTEGER NOT NULL,
            digest BLOB,
            encoding INTEGER NOT NULL,
            bytes BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX content_by_digest ON content (digest) WHERE digest IS NOT NULL;
        CREATE TABLE segment (
            message_id INTEGER NOT NULL,
            position INTEGER NOT NULL,
            content_id INTEGER NOT NULL,
            PRIMARY KEY (message_id, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE entry (
            mailbox_id INTEGER NOT NULL REFERENCES mailbox (id),
            uid INTEGER NOT NULL,
            message_id INTEGER NOT NULL,
            flags INTEGER NOT NULL,
            modseq INTEGER NOT NULL,
            saved_ms INTEGER NOT NULL,
            PRIMARY KEY (mailbox_id, uid)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE keyword (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE COLLATE NOCASE
        ) STRICT;
        CREATE TABLE expunged (
            mailbox_id INTEGER NOT NULL,
            modseq INTEGER NOT NULL,
            uid INTEGER NOT NULL,
            PRIMARY KEY (mailbox_id, modseq, uid)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE imported (item BLOB PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    ",
};

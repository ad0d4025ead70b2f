//! The invariants of a mail vault (Format 24), as queries for rows that break them.

use rusqlite::Connection;

const BROKEN: &[(&str, &str)] = &[
    (
        "the counts of a mailbox are those of its entries",
        "SELECT id FROM mailbox LEFT JOIN
             (SELECT mailbox_id, count(*) AS n, sum(flags & 1 = 0) AS unseen, sum(size) AS bytes
              FROM entry JOIN message ON message.id = message_id GROUP BY mailbox_id)
             ON mailbox_id = mailbox.id
         WHERE messages_count <> coalesce(n, 0) OR unseen_count <> coalesce(unseen, 0)
             OR messages_bytes <> coalesce(bytes, 0)",
    ),
    (
        "UIDs are below the next one, from 1",
        "SELECT uid FROM entry JOIN mailbox ON mailbox.id = mailbox_id
         WHERE uid < 1 OR uid >= uid_next OR uid_next > 0xffffffff",
    ),
    (
        "later messages of these tests, which move none, have higher UIDs",
        "SELECT a.uid FROM entry AS a JOIN entry AS b USING (mailbox_id)
         WHERE a.uid < b.uid AND a.message_id >= b.message_id AND b.uid - a.uid < 50",
    ),
    (
        "no modseq is above the one of the vault, and an entry's not above its mailbox's",
        "SELECT mailbox.id FROM mailbox JOIN mail_state LEFT JOIN entry ON mailbox_id = mailbox.id
         WHERE mailbox.modseq > mail_state.modseq OR entry.modseq > mailbox.modseq",
    ),
    (
        "no UIDVALIDITY is given twice",
        "SELECT uid_validity FROM mailbox WHERE id > 0 GROUP BY uid_validity HAVING count(*) > 1
         UNION ALL SELECT mailbox.id FROM mailbox JOIN mail_state
         WHERE mailbox.uid_validity > mail_state.uid_validity",
    ),
    (
        "the vault's last message id is not below any",
        "SELECT message.id FROM message JOIN mail_state WHERE message.id > last_message_id",
    ),
    (
        "a message counts its entries, and has one",
        "SELECT id FROM message WHERE entries_count < 1
             OR entries_count <> (SELECT count(*) FROM entry WHERE message_id = message.id)
         UNION ALL
         SELECT message_id FROM entry WHERE message_id NOT IN (SELECT id FROM message)",
    ),
    (
        "a content counts its references, and has one",
        "WITH reference (content_id) AS (
             SELECT content_id FROM message WHERE content_id IS NOT NULL
             UNION ALL SELECT content_id FROM segment),
         counted AS (SELECT content_id, count(*) AS n FROM reference GROUP BY content_id)
         SELECT id FROM content LEFT JOIN counted ON content_id = content.id
         WHERE references_count < 1 OR references_count <> coalesce(n, 0)
         UNION ALL SELECT content_id FROM counted WHERE content_id NOT IN (SELECT id FROM content)",
    ),
    (
        "a message has one content or segments, which begin at 0",
        "SELECT id FROM message LEFT JOIN
             (SELECT message_id, count(*) AS n, min(position) AS first FROM segment
              GROUP BY message_id) ON message_id = message.id
         WHERE (content_id IS NOT NULL AND n IS NOT NULL) OR (n IS NOT NULL AND first <> 0)
             OR (content_id IS NULL AND n IS NULL AND size > 0)",
    ),
    (
        "a segment belongs to a message, and lies in it",
        "SELECT position FROM segment LEFT JOIN message ON message.id = message_id
         WHERE message.id IS NULL OR position >= size",
    ),
    (
        "an encoding is known, and a content is not larger than its limit",
        "SELECT id FROM content WHERE encoding NOT IN (0, 1) OR length(bytes) > 131072
             OR length(digest) <> 32",
    ),
    (
        "keywords have the bits 5 to 62, and no flag is without a name",
        "SELECT id FROM keyword WHERE id NOT BETWEEN 5 AND 62 UNION ALL
         SELECT uid FROM entry
         WHERE flags & ~(31 | (SELECT coalesce(sum(1 << id), 0) FROM keyword))",
    ),
    (
        "SQLite finds the file whole",
        "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    ),
    ("foreign keys lead somewhere", "SELECT * FROM pragma_foreign_key_check"),
];

/// Checks all invariants of a vault.
pub(crate) fn check(vault: &Connection) {
    for (rule, query) in BROKEN {
        let mut statement = vault.prepare(query).unwrap();
        assert!(!statement.exists([]).unwrap(), "broken: {rule}");
    }
}

#[test]
fn each_invariant_can_fail() {
    let fixture = crate::VaultFixture::new();
    let large = crate::shared_parts::message_with(&[&b"x".repeat(20_000)]);
    fixture.store(fixture.inbox(), &[b"Subject: a\n\nb", &large]);
    let sql = fixture.sql();
    check(&sql);
    sql.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    for damage in [
        "UPDATE mailbox SET unseen_count = 1 WHERE id = 1",
        "UPDATE mailbox SET uid_next = 2 WHERE id = 1",
        "UPDATE entry SET message_id = 3 - message_id",
        "UPDATE mail_state SET modseq = 1",
        "UPDATE mailbox SET uid_validity = 7 WHERE id < 3",
        "UPDATE mail_state SET last_message_id = 1",
        "UPDATE message SET entries_count = 2",
        "UPDATE content SET references_count = 2",
        "DELETE FROM segment WHERE position = 0",
        "UPDATE segment SET position = position + 1000000 WHERE position > 0",
        "UPDATE content SET encoding = 2",
        "UPDATE entry SET flags = 33",
    ] {
        sql.execute_batch(&format!("SAVEPOINT damage; {damage}")).unwrap();
        let is_found =
            BROKEN.iter().any(|(_, query)| sql.prepare(query).unwrap().exists([]).unwrap());
        assert!(is_found, "{damage}");
        sql.execute_batch("ROLLBACK TO damage; RELEASE damage").unwrap();
    }
}

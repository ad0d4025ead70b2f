//! Tests of a copied tracked file: the copy becomes a device of its own, and no edit is lost.

use crate::fixture::{
    SyncFixture, check_all_sent, check_equal, check_sync_refused, devices, sync, token, track_all,
};
use crate::processes::{json, sql, warren};

/// Runs `cp`, with which people copy files, instead of code of our own.
fn copy(from: &str, to: &str) {
    let copied = std::process::Command::new("cp").args(["-p", from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn both_sides_of_a_copy_keep_all_their_edits() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (a, b) = (place.chinook("a.db"), place.at("b.db"));
    track_all(&a);
    let first =
        [&["sync", &a, "--device-name", "desk"], &place.first_time(&server.address)[..]].concat();
    json(&first);
    // These changes are pending, not yet sent: they are in both files.
    sql(&a, "UPDATE Artist SET Name = 'before the copy' WHERE ArtistId = 1");
    copy(&a, &b);
    sql(
        &a,
        "UPDATE Artist SET Name = 'edited in a' WHERE ArtistId = 2;
             INSERT INTO Genre VALUES (100, 'added in a');
             UPDATE Track SET Composer = 'a' WHERE TrackId = 1",
    );
    sql(
        &b,
        "UPDATE Artist SET Name = 'edited in b' WHERE ArtistId = 3;
             INSERT INTO Genre VALUES (101, 'added in b');
             DELETE FROM PlaylistTrack WHERE PlaylistId = 1 AND TrackId = 3402;
             UPDATE Track SET UnitPrice = 7.5 WHERE TrackId = 1",
    );

    assert_eq!(sync(&a)["registered_copy"], false);
    assert_eq!(sync(&b)["registered_copy"], true);
    assert_eq!(sync(&a)["registered_copy"], false);
    assert_eq!(sync(&b)["registered_copy"], false, "once is enough");
    check_equal(&a, &b);
    let edits = "SELECT Name FROM Artist WHERE ArtistId <= 3 UNION ALL SELECT Name FROM Genre WHERE GenreId >= 100
                 UNION ALL SELECT Composer || ' ' || UnitPrice FROM Track WHERE TrackId = 1
                 UNION ALL SELECT count(*) FROM PlaylistTrack WHERE PlaylistId = 1 AND TrackId = 3402";
    let expected = "before the copy\nedited in a\nedited in b\nadded in a\nadded in b\na 7.5\n0";
    assert_eq!(sql(&a, edits), expected);
    assert_eq!(sql(&b, edits), expected);

    check_devices(&a, &b);
    check_revoked(&a, &b);
}

/// Checks that there are two devices with names, tokens and node ids of their own, and that each
/// file has its own.
fn check_devices(a: &str, b: &str) {
    let (of_a, of_b) = (devices(a), devices(b));
    let names = |list: &[serde_json::Value]| {
        list.iter().map(|client| client["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&of_a), ["desk", "desk (copy)"]);
    assert_eq!(names(&of_b), names(&of_a));
    let current =
        |list: &[serde_json::Value]| list.iter().position(|c| c["current"] == true).unwrap();
    assert_eq!((current(&of_a), current(&of_b)), (0, 1));
    assert_ne!(token(a), token(b));
    let (a, b) = (check_all_sent(a), check_all_sent(b));
    assert_ne!(a["node_id"], b["node_id"]);
    assert_eq!((&a["messages_count"], &a["digest"]), (&b["messages_count"], &b["digest"]));
}

/// Revokes the original, which also revokes the device that it registered; the copy's file stays
/// unchanged.
fn check_revoked(a: &str, b: &str) {
    let id = devices(a)[1]["device_id"].as_str().unwrap().to_owned();
    json(&["device", "revoke", &id, a]);
    check_sync_refused(b, "invalid_token");
    sync(a);
    assert_eq!(devices(a).len(), 1);
    warren(&["device", "list", b, "--json"]).refused("invalid_token");
}

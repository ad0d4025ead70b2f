//! Describes the sync status: what the server and the account's other devices have, compared with
//! this file.

use std::time::Duration;

use doctor::counted;
use indicatif::HumanCount;
use protocol::{DeviceInfo, DeviceList};
use replica::{HttpTransport, Replica, ReplicaStatus, SyncStatus};

use crate::output::time_span::ago;

/// The time limit of the request; during a longer wait, the command would seem to hang.
const TIMEOUT: Duration = Duration::from_millis(2_500);
/// The maximum number of other devices in the text, those seen last first; `--json` has them all.
const DEVICES_COUNT_MAX: usize = 10;

/// Fetches the devices from the file's server, and stores their names. `None` if the file has no
/// server.
pub(crate) fn fetch_device_list(replica: &Replica) -> replica::Result<Option<DeviceList>> {
    let (Some(server), Some(token)) = (replica.server()?, replica.token()?) else {
        return Ok(None);
    };
    let http = HttpTransport::with_timeout(&server, replica.trusted_roots()?, TIMEOUT);
    let list = http.devices(&token)?;
    replica.store_device_names(&list)?;
    Ok(Some(list))
}

/// Returns one sentence: `in sync: the server has 169,000 of 169,000 changes; phone: seen 2 minutes
/// ago, in sync; …`.
pub(crate) fn describe(status: &ReplicaStatus, sync_status: &SyncStatus) -> String {
    let mut others: Vec<_> = sync_status.devices.iter().filter(|device| !device.current).collect();
    others.sort_by_key(|device| std::cmp::Reverse(device.last_seen_ms));
    let more = others.len().saturating_sub(DEVICES_COUNT_MAX);
    others.truncate(DEVICES_COUNT_MAX);
    let mut parts = vec![describe_sides(sync_status, status.uncaptured_tables.is_empty())];
    let now_ms = sync_status.server_time_ms;
    parts.extend(others.into_iter().map(|device| describe_device(device, now_ms)));
    if more > 0 {
        let more = counted(more as u64, "more device", "more devices");
        parts.push(format!("and {more}"));
    }
    parts.join("; ")
}

fn describe_device(device: &DeviceInfo, now_ms: u64) -> String {
    let name = if device.name.is_empty() { &device.device_id } else { &device.name };
    if device.last_seen_ms == 0 {
        return format!("{name}: never synced");
    }
    let seen = ago(device.last_seen_ms, now_ms);
    let (unsent, behind) =
        (HumanCount(device.unsent_count), HumanCount(device.pending_download_count));
    let state = match (device.unsent_count, device.pending_download_count) {
        (0, 0) => "in sync".to_owned(),
        (_, 0) => format!("{unsent} unsent"),
        (0, _) => format!("{behind} to receive"),
        _ => format!("{unsent} unsent, {behind} to receive"),
    };
    format!("{name}: seen {seen}, {state}")
}

fn describe_sides(sync_status: &SyncStatus, is_captured: bool) -> String {
    let SyncStatus {
        server_messages_count: held,
        total_messages_count: known,
        pending_upload_count,
        pending_download_count,
        in_sync,
        ..
    } = *sync_status;
    let (held, known) = (HumanCount(held), counted(known, "change", "changes"));
    let (verdict, remedy) = match (in_sync, pending_upload_count, pending_download_count) {
        (true, ..) => ("in sync", None),
        (false, 0, 0) if !is_captured => {
            let remedy = "but a schema has changed (to compare the rows, run `warren sync`)";
            ("not in sync", Some(remedy.to_owned()))
        }
        (false, 0, 0) => {
            let remedy = "but they differ from those in this file (to compare, run `warren sync`)";
            ("not in sync", Some(remedy.to_owned()))
        }
        (false, ..) => ("not in sync yet", None),
    };
    let mut parts = vec![format!("{verdict}: the server has {held} of {known}")];
    parts.extend(remedy);
    let to_sync = [(pending_upload_count, "to send"), (pending_download_count, "to receive")];
    for (count, what) in to_sync {
        if count > 0 {
            parts.push(format!("{} {what}", HumanCount(count)));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use crdt::{Fingerprint, NodeId};
    use replica::RemoteStatus;

    use super::*;

    const NOW_MS: u64 = 1_795_000_000_000;

    fn status(count: u64, unsent_count: u64, pending_count: u64, cursor: u64) -> ReplicaStatus {
        let remote = RemoteStatus {
            server: String::new(),
            login: String::new(),
            device_id: String::new(),
            cursor,
            last_synced_ms: 0,
            server_messages_count: 0,
            in_sync: true,
            server_loss: None,
        };
        ReplicaStatus {
            node_id: NodeId(1),
            tables: Vec::new(),
            messages_count: count,
            digest: 7,
            content_bytes: 0,
            unsent_count,
            rejected_count: 0,
            set_aside_count: 0,
            e2ee: false,
            pending_count,
            uncaptured_tables: Vec::new(),
            remote: Some(remote),
            visibility_overrides: Vec::new(),
            schema_conflicts: Vec::new(),
            missing_tables: Vec::new(),
            missing_constraints: Vec::new(),
        }
    }

    fn device(name: &str, last_seen_ms: u64, unsent_count: u64, behind: u64) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            last_seen_ms,
            unsent_count,
            pending_download_count: behind,
            ..DeviceInfo::default()
        }
    }

    fn list(count: u64, devices: Vec<DeviceInfo>) -> DeviceList {
        let fingerprint = Some(Fingerprint { count, digest: 7 }.into());
        DeviceList { devices, cursor: count, fingerprint, server_time_ms: NOW_MS }
    }

    fn described(status: &ReplicaStatus, list: &DeviceList) -> String {
        describe(status, &SyncStatus::new(status, list))
    }

    #[test]
    fn the_sync_status_says_who_has_what() {
        let mut devices = vec![
            device("laptop", NOW_MS - 3 * 86_400_000, 14, 120),
            device("phone", NOW_MS - 150_000, 0, 0),
            device("tablet", 0, 0, 169_000),
            device("this one", NOW_MS, 0, 0),
        ];
        devices[3].current = true;
        let text = described(&status(169_000, 0, 0, 169_000), &list(169_000, devices));
        assert_eq!(
            text,
            "in sync: the server has 169,000 of 169,000 changes; \
             phone: seen 3 minutes ago, in sync; \
             laptop: seen 3 days ago, 14 unsent, 120 to receive; tablet: never synced"
        );
        let guide = include_str!("../../../../../docs/guide/sync.md");
        assert!(guide.lines().any(|line| line == text), "the guide to sync shows another line");
    }

    #[test]
    fn what_is_not_equal_says_why() {
        let check = |status, verdict: &str, expected: &str| {
            let text = described(&status, &list(1_000, Vec::new()));
            assert_eq!(text, format!("{verdict}: the server has 1,000 of {expected}"));
        };
        check(status(1_000, 0, 2, 1_000), "not in sync yet", "1,002 changes, 2 to send");
        check(
            status(1_001, 1, 2, 995),
            "not in sync yet",
            "1,003 changes, 3 to send, 5 to receive",
        );
        check(status(995, 0, 0, 995), "not in sync yet", "1,000 changes, 5 to receive");
        let differ = "1,000 changes, but they differ from those in this file (to compare, run \
                      `warren sync`)";
        check(status(1_001, 0, 0, 1_000), "not in sync", differ);
        let rebuilt =
            ReplicaStatus { uncaptured_tables: vec!["t".into()], ..status(1_000, 0, 0, 1_000) };
        let compare =
            "1,000 changes, but a schema has changed (to compare the rows, run `warren sync`)";
        check(rebuilt, "not in sync", compare);
    }

    #[test]
    fn a_long_list_is_cut() {
        let devices = (1..=13).map(|seen| device("x", NOW_MS - seen, 0, 0)).collect();
        let text = described(&status(1, 0, 0, 1), &list(1, devices));
        assert_eq!(text.matches("; x: ").count(), 10);
        assert!(text.ends_with("; and 3 more devices"), "{text}");
    }
}

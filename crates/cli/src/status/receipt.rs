//! The receipt: how the server stands beside this file, and the account's other devices.

use std::time::Duration;

use protocol::{Client, ClientList};
use replica::{Http, Receipt, Replica, Status};

use crate::output::span::{ago, grouped};

/// How long to wait for it: longer, and people wonder what hangs.
const TIMEOUT: Duration = Duration::from_millis(2_500);
/// Other devices in the text, those seen last first; `--json` has them all.
const DEVICES_COUNT_MAX: usize = 10;

/// Asks the server of this file, and remembers what the devices are called. `None` if the file
/// knows no server.
pub(crate) fn fetch(replica: &Replica) -> replica::Result<Option<ClientList>> {
    let (Some(server), Some(token)) = (replica.server()?, replica.token()?) else {
        return Ok(None);
    };
    let http = Http::with_timeout(&server, replica.trusted_roots()?, TIMEOUT);
    let list: ClientList = http.get("/v1/clients", &token)?;
    replica.remember_devices(&list)?;
    Ok(Some(list))
}

/// One sentence: `server holds 169,000 of 169,000 changes, sets equal; phone 2 minutes ago, 0
/// unsent, in step; …`.
pub(crate) fn describe(status: &Status, list: &ClientList) -> String {
    let mut others: Vec<_> = list.clients.iter().filter(|client| !client.current).collect();
    others.sort_by_key(|client| std::cmp::Reverse(client.seen_ms));
    let more = others.len().saturating_sub(DEVICES_COUNT_MAX);
    others.truncate(DEVICES_COUNT_MAX);
    let mut parts = vec![sides(&Receipt::of(status, list), status.uncaptured.is_empty())];
    parts.extend(others.into_iter().map(|client| device(client, list.now_ms)));
    if more > 0 {
        parts.push(format!("and {more} more devices"));
    }
    parts.join("; ")
}

fn device(client: &Client, now_ms: u64) -> String {
    let name = if client.name.is_empty() { &client.client_id } else { &client.name };
    if client.seen_ms == 0 {
        return format!("{name} never synced");
    }
    let (seen, unsent) = (ago(client.seen_ms, now_ms), grouped(client.unsent));
    let fetch = match client.behind {
        0 => "in step".to_owned(),
        behind => format!("{} to fetch", grouped(behind)),
    };
    format!("{name} {seen}, {unsent} unsent, {fetch}")
}

fn sides(receipt: &Receipt, is_captured: bool) -> String {
    let Receipt { held, known, to_send, to_fetch, equal } = *receipt;
    let (held, known) = (grouped(held), grouped(known));
    let verdict = match (equal, to_send, to_fetch) {
        (true, ..) => "sets equal",
        (false, 0, 0) if !is_captured => "a schema has changed: `warren sync` compares its table",
        (false, 0, 0) => "sets differ: `warren sync` compares them",
        (false, ..) => "sets not equal yet",
    };
    let mut parts = vec![format!("server holds {held} of {known} changes"), verdict.to_owned()];
    for (count, what) in [(to_send, "to send"), (to_fetch, "to fetch")] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use crdt::{Fingerprint, Node};
    use replica::Remote;

    use super::*;

    const NOW_MS: u64 = 1_795_000_000_000;

    fn status(count: u64, unsent: u64, noted: u64, cursor: u64) -> Status {
        let remote = Remote {
            server: String::new(),
            login: String::new(),
            client_id: String::new(),
            cursor,
            synced_ms: 0,
            server_count: 0,
            equal: true,
            loss: None,
        };
        Status {
            node: Node(1),
            tables: Vec::new(),
            fingerprint: Fingerprint { count, digest: 7 },
            bytes: 0,
            unsent,
            refused_in_all: 0,
            set_aside: 0,
            sealed: false,
            noted,
            uncaptured: Vec::new(),
            remote: Some(remote),
            exceptions: Vec::new(),
            obstacles: Vec::new(),
            unknown: Vec::new(),
            missing_constraints: Vec::new(),
        }
    }

    fn client(name: &str, seen_ms: u64, unsent: u64, behind: u64) -> Client {
        Client { name: name.into(), seen_ms, unsent, behind, ..Client::default() }
    }

    fn list(count: u64, clients: Vec<Client>) -> ClientList {
        let fingerprint = Some(Fingerprint { count, digest: 7 }.into());
        ClientList { clients, cursor: count, fingerprint, now_ms: NOW_MS }
    }

    #[test]
    fn the_receipt_says_who_has_what() {
        let mut clients = vec![
            client("laptop", NOW_MS - 3 * 86_400_000, 14, 120),
            client("phone", NOW_MS - 150_000, 0, 0),
            client("tablet", 0, 0, 169_000),
            client("this one", NOW_MS, 0, 0),
        ];
        clients[3].current = true;
        assert_eq!(
            describe(&status(169_000, 0, 0, 169_000), &list(169_000, clients)),
            "server holds 169,000 of 169,000 changes, sets equal; \
             phone 2 minutes ago, 0 unsent, in step; \
             laptop 3 days ago, 14 unsent, 120 to fetch; tablet never synced"
        );
    }

    #[test]
    fn what_is_not_equal_says_why() {
        let check = |status, expected: &str| {
            let text = describe(&status, &list(1_000, Vec::new()));
            assert_eq!(text, format!("server holds 1,000 of {expected}"));
        };
        check(status(1_000, 0, 2, 1_000), "1,002 changes, sets not equal yet, 2 to send");
        check(status(1_001, 1, 2, 995), "1,003 changes, sets not equal yet, 3 to send, 5 to fetch");
        check(status(995, 0, 0, 995), "1,000 changes, sets not equal yet, 5 to fetch");
        let differ = "1,000 changes, sets differ: `warren sync` compares them";
        check(status(1_001, 0, 0, 1_000), differ);
        let rebuilt = Status { uncaptured: vec!["t".into()], ..status(1_000, 0, 0, 1_000) };
        check(rebuilt, "1,000 changes, a schema has changed: `warren sync` compares its table");
    }

    #[test]
    fn a_long_list_is_cut() {
        let clients = (1..=13).map(|seen| client("x", NOW_MS - seen, 0, 0)).collect();
        let text = describe(&status(1, 0, 0, 1), &list(1, clients));
        assert_eq!(text.matches("; x ").count(), 10);
        assert!(text.ends_with("; and 3 more devices"), "{text}");
    }
}

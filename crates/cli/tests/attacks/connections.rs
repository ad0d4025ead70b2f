//! Attacks by clients that connect and send nothing, or that subscribe to every event.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::attacked_server::AttackedServer;
use crate::attackers::beside;
use crate::count;
use crate::raw_client::{HonestUser, address, connect, head};

/// Starts a server with few enough connections for a test to take all of them.
fn target() -> (AttackedServer, usize) {
    let connections = count(400, 10_000);
    (AttackedServer::start(&["--connections-max", &connections.to_string()]), connections)
}

/// Sends half of a request's head, from one of `addresses` addresses.
fn half_open(target: &AttackedServer, number: usize, addresses: usize) -> Option<TcpStream> {
    let from = address(u16::try_from(100 + number % addresses).unwrap());
    let mut stream = connect(from, target.address()).ok()?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").ok().map(|()| stream)
}

#[test]
fn half_open_connections_of_one_address_leave_room() {
    let (target, connections) = target();
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let held: Vec<_> = (0..connections).filter_map(|n| half_open(&target, n, 1)).collect();
    let mut bob = HonestUser::register(&target, "bob", address(3));
    bob.measure().report("half-open connections of one address", &quiet, &target);
    drop(held);
}

/// Connections from many addresses take every place, but each newcomer displaces one of them.
#[test]
fn half_open_connections_of_many_addresses_leave_room() {
    let (target, connections) = target();
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let held: Vec<_> = (0..connections).filter_map(|n| half_open(&target, n, 40)).collect();
    let mut bob = HonestUser::register(&target, "bob", address(3));
    bob.measure().report("half-open connections of forty addresses", &quiet, &target);
    drop(held);
}

/// Connects and sends `opening`, and from then on `part` each second, until the server closes.
fn trickle(target: &AttackedServer, from: Ipv4Addr, opening: &[u8], part: &[u8]) {
    let Ok(mut stream) = connect(from, target.address()) else { return };
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut sent = stream.write_all(opening);
    while sent.is_ok() {
        match stream.read(&mut [0; 1 << 10]) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => sent = stream.write_all(part),
            Ok(0) | Err(_) => return,
        }
    }
}

/// Checks that a newcomer gets a connection at once, although the attackers, who hold all
/// connections, reopen theirs as soon as they lose them.
fn check_trickles(networks: usize, opening: &str, part: &str, attack: &str) {
    let connections = count(400, 1_000);
    let target = AttackedServer::start(&["--connections-max", &connections.to_string()]);
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let mut bob = HonestUser::register(&target, "bob", address(100));
    let quiet = ada.measure_connections();
    let trickle = |number: usize| {
        let from = address(u16::try_from(100 + number % networks).unwrap());
        trickle(&target, from, opening.as_bytes(), part.as_bytes());
    };
    beside(connections, trickle, || {
        ada.measure_connections().report(attack, &quiet, &target);
        // Bob is in an attacker's network: before his request arrives, enough new connections may
        // have come from there that his is closed again.
        bob.measure_retries().report(&format!("{attack}, one of them his"), &quiet, &target);
        target.end();
    });
}

#[test]
fn slow_bodies_leave_room() {
    let opening = head("POST", "/v1/devices", "", 60_000);
    check_trickles(10, &opening, " ", "slow bodies from ten networks");
    check_trickles(1, &opening, " ", "slow bodies from one network");
}

#[test]
fn idle_connections_leave_room() {
    let opening = head("GET", "/healthz", "", 0);
    check_trickles(10, &opening, "", "idle connections from ten networks");
}

#[test]
fn listeners_cost_others_nothing() {
    let target = AttackedServer::start(&[]);
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let mut mallory = HonestUser::register(&target, "mallory", address(9));
    let held: Vec<_> = (0..count(100, 500))
        .map(|_| {
            let mut stream = connect(address(9), target.address()).unwrap();
            let head = head("GET", "/v1/sync/events", &mallory.token, 0);
            stream.write_all(head.as_bytes()).unwrap();
            mallory.push();
            stream
        })
        .collect();
    ada.measure().report("listeners who read nothing", &quiet, &target);
    drop(held);
}

/// Subscribes to events, and returns the connection with the first line of the answer.
fn listen(target: &AttackedServer, from: Ipv4Addr, token: &str) -> (TcpStream, String) {
    let mut stream = connect(from, target.address()).unwrap();
    let head = head("GET", "/v1/sync/events", token, 0);
    let mut line = String::new();
    if stream.write_all(head.as_bytes()).is_ok() {
        // A connection that is closed in favor of another gets no answer.
        drop(BufReader::new(stream.try_clone().unwrap()).read_line(&mut line));
    }
    (stream, line)
}

#[test]
fn listeners_of_many_networks_leave_room_to_listen() {
    let target = AttackedServer::start(&["--connections-max", "200"]);
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure_connections();
    let mut held = Vec::new();
    for number in 0..12 {
        let from = address(100 + number);
        let mallory = HonestUser::register(&target, &format!("mallory{number}"), from);
        held.extend((0..15).map(|_| listen(&target, from, &mallory.token)));
    }
    // All attackers may subscribe, and there are connections left, so that none is closed for a
    // newcomer.
    let listening = held.iter().filter(|(_, line)| line.contains(" 200 ")).count();
    assert_eq!(listening, 180, "of the attackers listen");
    let (_honest, line) = listen(&target, address(2), &ada.token);
    assert!(line.contains(" 200 "), "{line:?}");
    ada.measure_connections().report("listeners of twelve networks", &quiet, &target);
}

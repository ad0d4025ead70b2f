//! Whoever connects and says nothing, or listens to everything.

use std::io::Write;
use std::net::TcpStream;

use crate::client::{User, address, connect, head};
use crate::count;
use crate::target::Target;

/// Few enough for a test to take them all.
fn target() -> (Target, usize) {
    let connections = count(400, 10_000);
    (Target::start(&["--connections-max", &connections.to_string()]), connections)
}

/// Half a request's head, from one of so many addresses.
fn half_open(target: &Target, number: usize, addresses: usize) -> Option<TcpStream> {
    let from = address(u16::try_from(100 + number % addresses).unwrap());
    let mut stream = connect(from, target.address()).ok()?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").ok().map(|()| stream)
}

#[test]
fn half_open_connections_of_one_address_leave_room() {
    let (target, connections) = target();
    let mut ada = User::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let held: Vec<_> = (0..connections).filter_map(|n| half_open(&target, n, 1)).collect();
    let mut bob = User::register(&target, "bob", address(3));
    bob.measure().report("half-open connections of one address", &quiet, &target);
    drop(held);
}

/// From many addresses they take every place; but they soon lose it again.
#[test]
fn half_open_connections_of_many_addresses_are_closed_soon() {
    let (target, connections) = target();
    let mut ada = User::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let held: Vec<_> = (0..connections).filter_map(|n| half_open(&target, n, 40)).collect();
    let mut bob = User::register(&target, "bob", address(3));
    bob.measure().report("half-open connections of forty addresses", &quiet, &target);
    drop(held);
}

#[test]
fn listeners_cost_others_nothing() {
    let target = Target::start(&[]);
    let mut ada = User::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let mut mallory = User::register(&target, "mallory", address(9));
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

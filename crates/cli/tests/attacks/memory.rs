//! Attacks by clients that announce bodies, that do not read answers, or that send endless forms.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::attacked_server::{AttackedServer, knows_room};
use crate::count;
use crate::raw_client::{HonestUser, address, connect, connect_with, head};

const MIB: usize = 1 << 20;
/// The time limit under slow bodies. Those of one account wait for each other for at most a
/// minute, and then end within five seconds.
const SLOW_TIME_MAX: Duration = Duration::from_mins(2);
/// The most memory that the server may use: 128 MiB of budget for bodies and answers, twice as
/// much for what surrounds them, and the memory of an idle server.
const MEMORY_MIB_MAX: u64 = 3 * 128 + 128;
/// The options that set the memory budget. The gateway's largest request is lowered to fit into
/// it.
const ROOM: &[&str] = &["--body-memory-mib", "128", "--actual-budget-sync-bytes-max", "16777216"];

fn target() -> AttackedServer {
    AttackedServer::start(if knows_room() { ROOM } else { &[] })
}

#[track_caller]
fn check_memory(target: &AttackedServer) {
    let high = target.memory_high_mib();
    assert!(high < MEMORY_MIB_MAX, "{high} MiB");
}

#[test]
fn promises_of_one_account_keep_no_other_account_waiting() {
    let target = target();
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let mut neighbour = HonestUser::register(&target, "neighbour", address(9));
    let mallory = HonestUser::register(&target, "mallory", address(9));
    let quiet = ada.measure();
    let held: Vec<_> = (0..count(70, 64))
        .map(|_| {
            let mut stream = connect(address(9), target.address()).unwrap();
            let head = head("POST", "/v1/sync/delta", &mallory.token, 16 * MIB);
            write!(stream, "{head}{{").unwrap();
            stream
        })
        .collect();
    ada.measure().report("64 promises of 16 MiB", &quiet, &target);
    neighbour.measure().report("the same, at the attacker's address", &quiet, &target);
    check_memory(&target);
    drop(held);
}

#[test]
fn slow_bodies_hold_up_nobody_and_end() {
    let target = AttackedServer::start(&["--request-timeout-seconds", "5"]);
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let mallory = HonestUser::register(&target, "mallory", address(9));
    let quiet = ada.measure();
    let mut held: Vec<_> = (0..count(100, 2_000))
        .filter_map(|number| {
            // The connections of one address are limited, too.
            let from = address(u16::try_from(10 + number % 10).unwrap());
            let mut stream = connect(from, target.address()).ok()?;
            let head = head("POST", "/v1/sync/delta", &mallory.token, MIB);
            write!(stream, "{head}{{").ok().map(|()| stream)
        })
        .collect();
    let begun = Instant::now();
    while !held.is_empty() && begun.elapsed() < SLOW_TIME_MAX {
        ada.push();
        thread::park_timeout(Duration::from_secs(1));
        held.retain_mut(|stream| stream.write_all(b" ").is_ok());
    }
    ada.measure().report("slow bodies", &quiet, &target);
    assert!(held.is_empty(), "{} bodies are still waited for", held.len());
    check_memory(&target);
}

/// Registers a user and fills the user's vault.
fn hoarder(target: &AttackedServer, pages: usize) -> HonestUser {
    let mut hoarder = HonestUser::register(target, "hoarder", address(9));
    for _ in 0..pages {
        let (status, answer) = hoarder.try_push(&vec![7; MIB]).unwrap();
        assert_eq!(status, 200, "{answer}");
    }
    hoarder
}

/// Sends `count` requests whose answers are not read.
fn ask_and_do_not_read(target: &AttackedServer, hoarder: &HonestUser, path: &str, count: usize) {
    let mut ada = HonestUser::register(target, "ada", address(2));
    let quiet = ada.measure();
    let held: Vec<_> = (0..count)
        .filter_map(|_| {
            let mut stream = connect_with(address(9), target.address(), Some(4 << 10)).ok()?;
            let head = head("GET", path, &hoarder.token, 0);
            stream.write_all(head.as_bytes()).ok().map(|()| stream)
        })
        .collect();
    thread::park_timeout(Duration::from_secs(3));
    ada.measure().report(&format!("{count} unread answers to {path}"), &quiet, target);
    check_memory(target);
    drop(held);
    // The memory of these answers is free again.
    ada.push();
}

#[test]
fn unread_pages_are_bounded() {
    let target = target();
    let hoarder = hoarder(&target, 20);
    ask_and_do_not_read(&target, &hoarder, "/v1/sync/delta", count(60, 100));
}

#[test]
fn unread_streams_are_bounded() {
    let target = target();
    let hoarder = hoarder(&target, 20);
    ask_and_do_not_read(&target, &hoarder, "/v1/sync/full", count(60, 200));
}

#[test]
fn long_messages_are_bounded_too() {
    let target = target();
    let mut hoarder = HonestUser::register(&target, "hoarder", address(9));
    for _ in 0..6 {
        let (status, answer) = hoarder.try_push(&vec![7; 11 * MIB]).unwrap();
        assert_eq!(status, 200, "{answer}");
    }
    ask_and_do_not_read(&target, &hoarder, "/v1/sync/delta", count(40, 100));
}

#[test]
fn forms_without_a_token_are_small() {
    let target = target();
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let body = vec![b' '; MIB - 1];
    let mut held: Vec<_> = (0..count(60, 200))
        .map(|_| {
            let mut stream = connect(address(9), target.gateway()).unwrap();
            let head = head("POST", "/account/login", "", MIB);
            // The server refuses the request before all of it is sent.
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
            stream
        })
        .collect();
    ada.measure().report("logins of a MiB at the gateway", &quiet, &target);
    check_memory(&target);
    for stream in &mut held {
        let mut answer = Vec::new();
        // The connection's end may have discarded the answer.
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}

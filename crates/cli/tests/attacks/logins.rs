//! Attacks by clients that guess passwords, or that create accounts without end.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::attacked_server::{ADMIN, AttackedServer};
use crate::attackers::beside;
use crate::raw_client::{HonestUser, PASSWORD, RawHttpClient, address};
use crate::{count, is_long};

/// The time limit of a login with the right password under any attack. It is checked only in the
/// long form, on an otherwise idle machine. The server itself refuses a login that has waited for
/// 20 s.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum number of refusals of a user who waits as long as the server asks.
const REFUSED_COUNT_MAX: usize = 2;

/// Tries a wrong password that was never tried before; pauses after a refusal.
fn guess(target: &AttackedServer, login: &str, from: Ipv4Addr) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let password = format!("not the password {}", NEXT.fetch_add(1, Ordering::Relaxed));
    let status = RawHttpClient::new(from, target.address()).log_in(login, &password);
    if !matches!(status, Ok((401, _))) {
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Logs in repeatedly with the right password, and checks the time of each login.
#[expect(clippy::print_stdout, reason = "the figures are what a long run is for")]
fn check_logins(target: &AttackedServer, login: &str, from: Ipv4Addr, attack: &str) {
    let mut client = RawHttpClient::new(from, target.address());
    let mut log_in = || {
        let begun = Instant::now();
        let (status, _) = client.log_in(login, PASSWORD).unwrap();
        assert_eq!(status, 201, "{attack}");
        begun.elapsed()
    };
    let worst = (0..count(3, 15)).map(|_| log_in()).max().unwrap();
    println!("{attack}: the right password passed each time, the slowest in {worst:.1?}");
    assert!(worst < LOGIN_TIME_MAX || !is_long(), "{attack}: {worst:?}");
}

/// Logs in from each address. If other clients' logins cause a refusal, it waits as long as the
/// server asks and tries again.
#[expect(clippy::print_stdout, reason = "the figures are what a long run is for")]
fn check_returns(
    target: &AttackedServer,
    login: &str,
    from: impl Iterator<Item = Ipv4Addr>,
    attack: &str,
) {
    let log_in = |from| RawHttpClient::new(from, target.address()).log_in_as_told(login, PASSWORD);
    let all: Vec<_> = from.map(log_in).collect();
    println!("{attack}: the right password passed, after these refusals and times: {all:.1?}");
    assert!(all.iter().all(|(refused, _)| *refused <= REFUSED_COUNT_MAX), "{attack}");
}

#[test]
fn guesses_from_elsewhere_keep_the_owner_out_nowhere() {
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    let attack = |_| guess(&target, "ada", address(9));
    beside(4, attack, || {
        check_logins(&target, "ada", address(2), "four who guess, from home");
        check_logins(&target, "ada", address(3), "four who guess, from a new network");
    });
}

#[test]
fn guesses_from_many_networks_keep_the_owner_out_nowhere() {
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    let attack =
        |number: usize| guess(&target, "ada", address(u16::try_from(100 + number).unwrap()));
    beside(count(16, 64), attack, || {
        check_logins(&target, "ada", address(2), "many networks, from home");
        check_logins(&target, "ada", address(3), "many networks, from a new network");
    });
}

/// Checks logins while networks keep the queue full. Each network has as many connections as may
/// log in without a pause, each with login names of its own.
fn check_full_queue(networks: usize) {
    const CONNECTIONS: usize = 19;
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    HonestUser::register(&target, "bob", address(3));
    let next = AtomicUsize::new(0);
    let attack = |number: usize| {
        let login = format!("nobody{}", next.fetch_add(1, Ordering::Relaxed));
        guess(&target, &login, address(u16::try_from(1_000 + number / CONNECTIONS).unwrap()));
    };
    let name = |who: &str| format!("{networks} networks with {CONNECTIONS} connections, {who}");
    beside(networks * CONNECTIONS, attack, || {
        check_logins(&target, "ada", address(2), &name("from home"));
        let new = (100..).take(count(3, 15)).map(address);
        check_returns(&target, "bob", new, &name("each time from a new network"));
        target.end();
    });
}

#[test]
fn many_networks_that_keep_the_queue_full_keep_nobody_out() {
    check_full_queue(60);
    if is_long() {
        check_full_queue(250);
    }
}

/// Checks logins while `guessers` clients in the owner's own network guess without a pause.
fn check_guesses_at_home(guessers: usize) {
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    HonestUser::register(&target, "bob", address(2));
    let attack = |_| guess(&target, "ada", address(2));
    beside(guessers, attack, || {
        let home = (0..count(1, 5)).map(|_| address(2));
        check_returns(&target, "ada", home, &format!("{guessers} who guess at home"));
        check_logins(&target, "bob", address(2), &format!("{guessers} who guess at others there"));
        target.end();
    });
}

#[test]
fn guesses_from_her_own_network_keep_the_owner_out_nowhere() {
    for guessers in [4, 40] {
        check_guesses_at_home(guessers);
    }
    if is_long() {
        check_guesses_at_home(8);
        check_guesses_at_home(200);
    }
}

#[test]
fn guesses_at_any_name_keep_nobody_new_there_out() {
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    let next = AtomicUsize::new(0);
    let attack = |_| {
        let login = format!("nobody{}", next.fetch_add(1, Ordering::Relaxed));
        guess(&target, &login, address(9));
    };
    beside(count(8, 40), attack, || {
        let attack = "those who guess in a network where she is new";
        check_returns(&target, "ada", [address(9)].into_iter(), attack);
        target.end();
    });
}

#[test]
fn guesses_at_any_name_keep_out_neither_others_there_nor_the_operator() {
    let target = AttackedServer::start(&[]);
    let bob = HonestUser::register(&target, "bob", address(9));
    for number in 0..22 {
        guess(&target, &format!("nobody{number}"), address(9));
    }
    check_logins(&target, &bob.login, address(9), "twenty-two names at his address");
    let mut operator = RawHttpClient::new(address(9), target.address());
    let (status, _) = operator.ask("GET", "/v1/admin/overview", ADMIN, &json!(null)).unwrap();
    assert_eq!(status, 200);
}

#[test]
fn a_flood_of_guesses_leaves_time_for_the_others() {
    let target = AttackedServer::start(&[]);
    let mut ada = HonestUser::register(&target, "ada", address(2));
    let quiet = ada.measure();
    let attack = |number: usize| {
        let from = address(u16::try_from(100 + number).unwrap());
        guess(&target, &format!("nobody{}", number % 7), from);
    };
    let ((), attempts) = beside(count(16, 64), attack, || {
        check_logins(&target, "ada", address(2), "a flood of guesses");
        ada.measure().report("a flood of guesses", &quiet, &target);
    });
    assert!(attempts > 0, "the attack was none");
}

#[test]
fn making_accounts_keeps_nobody_from_logging_in() {
    let target = AttackedServer::start(&[]);
    HonestUser::register(&target, "ada", address(2));
    let number = AtomicUsize::new(0);
    let attack = |_| {
        let login = format!("user{}", number.fetch_add(1, Ordering::Relaxed));
        let account = json!({ "login": login, "password": PASSWORD });
        drop(RawHttpClient::new(address(9), target.address()).post("/v1/accounts", "", &account));
    };
    beside(count(30, 150), attack, || {
        check_logins(&target, "ada", address(2), "accounts without end, from home");
        check_logins(&target, "ada", address(3), "accounts without end, from a new network");
    });
    assert!(number.into_inner() > 10, "the attack was none");
    // One address creates no more accounts than its limit.
    let made = target.accounts_count();
    assert!(made < 100, "{made} accounts");
}

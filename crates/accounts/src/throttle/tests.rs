use super::*;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const START: u64 = 1_000 * DAY;

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Fails once: `None`, or if it is refused, after how many seconds to come again.
fn fail(throttle: &Throttle, login: &Login, address: Option<IpAddr>, now_ms: u64) -> Option<u64> {
    match throttle.begin(Some(login), address, now_ms) {
        Ok(attempt) => {
            drop(attempt);
            None
        }
        Err(Error::TooManyAttempts { retry_after_s }) => Some(retry_after_s),
        Err(error) => panic!("{error}"),
    }
}

/// How many of an attacker's attempts get through who tries whenever it is allowed.
fn attempts_within(throttle: &Throttle, login: &Login, from_ms: u64, until_ms: u64) -> u64 {
    let (mut now_ms, mut count) = (from_ms, 0);
    while now_ms < until_ms && count < 1_000 {
        match fail(throttle, login, None, now_ms) {
            None => count += 1,
            Some(retry_after_s) => now_ms += retry_after_s * SECOND,
        }
    }
    count
}

#[test]
fn after_five_failures_the_pauses_double_up_to_fifteen_minutes() {
    let (throttle, ada) = (Throttle::new(), login("ada"));
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, None, START), None);
    }
    let mut now_ms = START;
    for pause_s in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        assert_eq!(fail(&throttle, &ada, None, now_ms), Some(pause_s));
        assert_eq!(fail(&throttle, &ada, None, now_ms + pause_s * SECOND - 1), Some(1));
        now_ms += pause_s * SECOND;
        assert_eq!(fail(&throttle, &ada, None, now_ms), None, "after {pause_s} s");
    }
    // Meanwhile none was forgiven: that takes 15 minutes. From here on the longest pause is met.
    for _ in 0..20 {
        now_ms += 15 * MINUTE;
        assert_eq!(fail(&throttle, &ada, None, now_ms), None);
    }
    assert!(fail(&throttle, &ada, None, now_ms).unwrap() <= 15 * 60);
    assert_eq!(fail(&throttle, &login("bob"), None, now_ms), None, "others are not affected");
}

#[test]
fn the_longest_pause_is_fifteen_minutes() {
    let failures = (0..100).fold(Failures::default(), |f, _| f.plus_one(&PER_ACCOUNT, START));
    assert_eq!(failures.pause_ms(&PER_ACCOUNT, START), 15 * MINUTE);
}

#[test]
fn patience_gives_an_attacker_a_hundred_attempts_a_day() {
    let (throttle, ada) = (Throttle::new(), login("ada"));
    let first_day = attempts_within(&throttle, &ada, START, START + DAY);
    let second_day = attempts_within(&throttle, &ada, START + DAY, START + 2 * DAY);
    assert!((96..=15 + 96).contains(&first_day), "{first_day}");
    assert!((90..=97).contains(&second_day), "{second_day}");
}

#[test]
fn a_success_clears_the_account() {
    let (throttle, ada) = (Throttle::new(), login("ada"));
    for _ in 0..4 {
        assert_eq!(fail(&throttle, &ada, None, START), None);
    }
    throttle.begin(Some(&ada), None, START).unwrap().succeed();
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, None, START), None);
    }
    assert_eq!(fail(&throttle, &ada, None, START), Some(1));
}

#[test]
fn a_burst_gets_no_further_than_a_row() {
    let (throttle, ada) = (Throttle::new(), login("ada"));
    let running: Vec<_> =
        (0..100).map_while(|_| throttle.begin(Some(&ada), None, START).ok()).collect();
    assert_eq!(running.len(), 5);
    drop(running);
    assert_eq!(fail(&throttle, &ada, None, START), Some(1));
}

#[test]
fn an_abandoned_attempt_does_not_count() {
    let (throttle, ada, home) = (Throttle::new(), login("ada"), Some(address("192.0.2.1")));
    for _ in 0..100 {
        throttle.begin(Some(&ada), home, START).unwrap().abandon();
    }
    assert_eq!(fail(&throttle, &ada, home, START), None);
}

#[test]
fn an_address_is_slowed_over_all_accounts() {
    let (throttle, home) = (Throttle::new(), Some(address("192.0.2.1")));
    for index in 0..20 {
        assert_eq!(fail(&throttle, &login(&format!("user{index}")), home, START), None);
    }
    assert_eq!(fail(&throttle, &login("ada"), home, START), Some(1));
    assert_eq!(fail(&throttle, &login("ada"), Some(address("192.0.2.2")), START), None);
    // A success elsewhere, or with one's own account, does not reset the address.
    throttle.begin(Some(&login("ada")), None, START).unwrap().succeed();
    assert_eq!(fail(&throttle, &login("ada"), home, START), Some(1));
    assert_eq!(fail(&throttle, &login("ada"), home, START + SECOND), None);
}

#[test]
fn successes_do_not_use_up_an_address() {
    let (throttle, office) = (Throttle::new(), Some(address("192.0.2.1")));
    for index in 0..100 {
        throttle.begin(Some(&login(&format!("user{index}"))), office, START).unwrap().succeed();
    }
    assert_eq!(fail(&throttle, &login("ada"), office, START), None);
}

#[test]
fn ipv6_counts_by_64_and_mapped_ipv4_as_ipv4() {
    let network = |text: &str| Network::of(address(text));
    assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::7"));
    assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
}

#[test]
fn a_clock_set_back_makes_nobody_wait_longer() {
    let (throttle, ada) = (Throttle::new(), login("ada"));
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, None, START + 300 * DAY), None);
    }
    let refused = fail(&throttle, &ada, None, START);
    assert!(refused.is_some_and(|seconds| seconds <= 15 * 60), "{refused:?}");
    let waited_ms = START + refused.unwrap() * SECOND;
    assert_eq!(fail(&throttle, &ada, None, waited_ms), None);
}

#[test]
fn the_memory_is_bounded() {
    let throttle = Throttle::new();
    let count_max = KEYS_COUNT_MAX.get();
    for index in 0..count_max + 10 {
        let address = IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(index).unwrap()));
        assert_eq!(fail(&throttle, &login(&format!("u{index}")), Some(address), START), None);
    }
    let failures = throttle.lock();
    assert_eq!((failures.by_login.len(), failures.by_network.len()), (count_max, count_max));
}

#[test]
fn attempts_without_a_login_count_against_their_address_alone() {
    let (throttle, office) = (Throttle::new(), Some(address("192.0.2.7")));
    let attempt = |from| throttle.begin(None, from, START).map(drop);
    for _ in 0..20 {
        attempt(office).unwrap();
    }
    assert!(matches!(attempt(office), Err(Error::TooManyAttempts { retry_after_s: 1 })));
    attempt(Some(address("192.0.2.8"))).unwrap();
    // A login from there waits as well, and one from elsewhere does not.
    assert_eq!(fail(&throttle, &login("ada"), office, START), Some(1));
    assert_eq!(fail(&throttle, &login("ada"), None, START), None);
}

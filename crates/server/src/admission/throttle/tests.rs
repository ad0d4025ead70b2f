use std::net::Ipv4Addr;

use super::*;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const START: u64 = 1_000 * DAY;

const HOME: Network = network(1);
const ELSEWHERE: Network = network(2);

const fn network(number: u32) -> Network {
    Network::V4(Ipv4Addr::from_bits(number))
}

fn throttle() -> Arc<Throttle> {
    Throttle::new(Limit::PER_NETWORK)
}

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

/// Fails once: `None`, or if it is refused, after how many seconds to come again.
fn fail(throttle: &Arc<Throttle>, login: &Login, network: Network, now_ms: u64) -> Option<u64> {
    match throttle.begin(Some(login), network, now_ms) {
        Ok(attempt) => {
            attempt.fail();
            None
        }
        Err(TooManyAttempts { retry_after_s }) => Some(retry_after_s),
    }
}

/// Logs in once, and says after how many milliseconds.
fn succeed(throttle: &Arc<Throttle>, login: &Login, network: Network, now_ms: u64) -> Option<u64> {
    let attempt = throttle.begin(Some(login), network, now_ms).ok()?;
    let wait_ms = u64::try_from(attempt.wait.as_millis()).unwrap();
    attempt.succeed();
    Some(wait_ms)
}

/// How many of an attacker's attempts get through who tries whenever it is allowed.
fn attempts_within(throttle: &Arc<Throttle>, login: &Login, from_ms: u64, until_ms: u64) -> u64 {
    let (mut now_ms, mut count) = (from_ms, 0);
    while now_ms < until_ms && count < 1_000 {
        match fail(throttle, login, HOME, now_ms) {
            None => count += 1,
            Some(retry_after_s) => now_ms += retry_after_s * SECOND,
        }
    }
    count
}

#[test]
fn after_five_failures_the_pauses_double_up_to_fifteen_minutes() {
    let (throttle, ada) = (throttle(), login("ada"));
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, HOME, START), None);
    }
    let mut now_ms = START;
    for pause_s in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        assert_eq!(fail(&throttle, &ada, HOME, now_ms), Some(pause_s));
        assert_eq!(fail(&throttle, &ada, HOME, now_ms + pause_s * SECOND - 1), Some(1));
        now_ms += pause_s * SECOND;
        assert_eq!(fail(&throttle, &ada, HOME, now_ms), None, "after {pause_s} s");
    }
    // Meanwhile none was forgiven: that takes 15 minutes. From here on the longest pause is met.
    for _ in 0..20 {
        now_ms += 15 * MINUTE;
        assert_eq!(fail(&throttle, &ada, HOME, now_ms), None);
    }
    assert!(fail(&throttle, &ada, HOME, now_ms).unwrap() <= 15 * 60);
    assert_eq!(fail(&throttle, &login("bob"), HOME, now_ms), None, "others are not affected");
}

#[test]
fn the_longest_pause_is_fifteen_minutes() {
    let failures = (0..100).fold(Failures::default(), |f, _| f.plus_one(Limit::PER_LOGIN, START));
    assert_eq!(failures.pause_ms(Limit::PER_LOGIN, START), 15 * MINUTE);
}

#[test]
fn patience_gives_an_attacker_a_hundred_attempts_a_day() {
    let (throttle, ada) = (throttle(), login("ada"));
    let first_day = attempts_within(&throttle, &ada, START, START + DAY);
    let second_day = attempts_within(&throttle, &ada, START + DAY, START + 2 * DAY);
    assert!((96..=15 + 96).contains(&first_day), "{first_day}");
    assert!((90..=97).contains(&second_day), "{second_day}");
}

#[test]
fn a_stranger_s_guesses_keep_nobody_else_out() {
    let (throttle, ada) = (throttle(), login("ada"));
    for number in 10..1_000 {
        while fail(&throttle, &ada, network(number), START).is_none() {}
    }
    assert_eq!(succeed(&throttle, &ada, HOME, START), Some(0));
}

#[test]
fn a_success_clears_the_login_for_its_network() {
    let (throttle, ada) = (throttle(), login("ada"));
    for _ in 0..4 {
        assert_eq!(fail(&throttle, &ada, HOME, START), None);
    }
    assert_eq!(succeed(&throttle, &ada, HOME, START), Some(0));
    for _ in 0..5 {
        assert_eq!(throttle.begin(Some(&ada), HOME, START).unwrap().failures_count, 0);
    }
}

#[test]
fn from_a_known_network_attempts_wait_in_line_and_five_get_their_turn_within_ten_seconds() {
    let (throttle, ada) = (throttle(), login("ada"));
    throttle.note(&ada, HOME);
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, HOME, START), None);
    }
    // As many as may wait do, again and again.
    let waits = || {
        let waits = (0..).map_while(|_| throttle.begin(Some(&ada), HOME, START).ok());
        waits.map(|attempt| (attempt.wait.as_millis(), attempt.fail()).0).collect::<Vec<_>>()
    };
    assert_eq!(waits(), [0, 1_500, 3_000, 4_500, 6_000, 7_500]);
    assert_eq!(fail(&throttle, &ada, HOME, START), Some(2));
    // One of them has had its turn; who comes next has theirs within the time.
    assert_eq!(succeed(&throttle, &ada, HOME, START + 1_500), Some(7_500));
    // Elsewhere, and for others here, all is as it was.
    assert_eq!(succeed(&throttle, &ada, ELSEWHERE, START), Some(0));
    assert_eq!(succeed(&throttle, &login("bob"), HOME, START), Some(0));
}

#[test]
fn who_leaves_the_line_makes_room_in_it() {
    let (throttle, ada) = (throttle(), login("ada"));
    throttle.note(&ada, HOME);
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, HOME, START), None);
    }
    for _ in 0..100 {
        drop(throttle.begin(Some(&ada), HOME, START).unwrap());
    }
    assert_eq!(succeed(&throttle, &ada, HOME, START), Some(0));
}

#[test]
fn from_a_known_network_nobody_is_refused_for_others_guesses() {
    let (throttle, ada) = (throttle(), login("ada"));
    assert_eq!(succeed(&throttle, &ada, HOME, START), Some(0));
    for index in 0..20 {
        assert_eq!(fail(&throttle, &login(&format!("user{index}")), HOME, START), None);
    }
    assert_eq!(fail(&throttle, &login("bob"), HOME, START), Some(1));
    assert_eq!(succeed(&throttle, &ada, HOME, START), Some(0));
}

#[test]
fn a_burst_gets_no_further_than_a_row() {
    let (throttle, ada) = (throttle(), login("ada"));
    let running: Vec<_> =
        (0..100).map_while(|_| throttle.begin(Some(&ada), HOME, START).ok()).collect();
    assert_eq!(running.len(), 5);
    running.into_iter().for_each(Attempt::fail);
    assert_eq!(fail(&throttle, &ada, HOME, START), Some(1));
}

#[test]
fn an_attempt_that_was_not_made_does_not_count() {
    let (throttle, ada) = (throttle(), login("ada"));
    for _ in 0..100 {
        drop(throttle.begin(Some(&ada), HOME, START).unwrap());
    }
    assert_eq!(fail(&throttle, &ada, HOME, START), None);
}

#[test]
fn a_network_is_slowed_over_all_logins() {
    let throttle = throttle();
    for index in 0..20 {
        assert_eq!(fail(&throttle, &login(&format!("user{index}")), HOME, START), None);
    }
    assert_eq!(fail(&throttle, &login("ada"), HOME, START), Some(1));
    // A success elsewhere, or with one's own account, does not reset the network.
    assert_eq!(succeed(&throttle, &login("ada"), ELSEWHERE, START), Some(0));
    assert_eq!(fail(&throttle, &login("ada"), HOME, START), Some(1));
    assert_eq!(fail(&throttle, &login("ada"), HOME, START + SECOND), None);
}

#[test]
fn successes_do_not_use_up_a_network() {
    let throttle = throttle();
    for index in 0..100 {
        assert!(succeed(&throttle, &login(&format!("user{index}")), HOME, START).is_some());
    }
    assert_eq!(fail(&throttle, &login("ada"), HOME, START), None);
}

#[test]
fn attempts_without_a_login_count_against_their_network_alone() {
    let throttle = throttle();
    let attempt = |from| throttle.begin(None, from, START).map(Attempt::fail);
    for _ in 0..20 {
        attempt(HOME).unwrap();
    }
    assert_eq!(attempt(HOME), Err(TooManyAttempts { retry_after_s: 1 }));
    attempt(ELSEWHERE).unwrap();
    // Whoever has been right from here before is not refused.
    throttle.begin(None, ELSEWHERE, START).unwrap().succeed();
    for _ in 0..20 {
        attempt(ELSEWHERE).unwrap();
    }
    let attempt = throttle.begin(None, ELSEWHERE, START).unwrap();
    assert!(attempt.wait <= Duration::from_millis(LINE_MS_MAX));
}

#[test]
fn a_clock_set_back_makes_nobody_wait_longer() {
    let (throttle, ada) = (throttle(), login("ada"));
    for _ in 0..5 {
        assert_eq!(fail(&throttle, &ada, HOME, START + 300 * DAY), None);
    }
    let refused = fail(&throttle, &ada, HOME, START);
    assert!(refused.is_some_and(|seconds| seconds <= 15 * 60), "{refused:?}");
    let waited_ms = START + refused.unwrap() * SECOND;
    assert_eq!(fail(&throttle, &ada, HOME, waited_ms), None);

    throttle.note(&ada, ELSEWHERE);
    for _ in 0..8 {
        assert_eq!(fail(&throttle, &ada, ELSEWHERE, START + 300 * DAY), None);
    }
    assert_eq!(succeed(&throttle, &ada, ELSEWHERE, START), Some(0));
}

#[test]
fn the_memory_is_bounded() {
    let throttle = throttle();
    let count_max = KEYS_COUNT_MAX.get();
    for index in 0..u32::try_from(count_max).unwrap() + 10 {
        let (login, network) = (login(&format!("u{index}")), network(index));
        assert_eq!(fail(&throttle, &login, network, START), None);
        throttle.note(&login, network);
    }
    let counts = throttle.counts();
    let lengths = (counts.by_login.len(), counts.by_network.len(), counts.known.len());
    assert_eq!(lengths, (count_max, count_max, count_max));
}

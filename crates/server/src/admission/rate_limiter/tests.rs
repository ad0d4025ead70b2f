use std::cell::RefCell;
use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::*;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const START: u64 = 1_000 * DAY;

const HOME: PeerNetwork = network(1);
const ELSEWHERE: PeerNetwork = network(2);

const fn network(number: u32) -> PeerNetwork {
    PeerNetwork::V4(Ipv4Addr::from_bits(number))
}

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

/// A rate limiter whose attempts never wait: one that would have to is dropped.
struct RateLimiterFixture {
    limiter: Arc<RateLimiter>,
    paused_until_ms: RefCell<HashMap<AttemptLane, u64>>,
}

impl RateLimiterFixture {
    fn new() -> Self {
        Self {
            limiter: RateLimiter::new(RateLimit::PER_NETWORK),
            paused_until_ms: RefCell::default(),
        }
    }

    /// Begins an attempt, or returns how many seconds it would have to wait.
    fn begin(
        &self,
        login: Option<&Login>,
        network: PeerNetwork,
        now_ms: u64,
    ) -> Result<LoginAttempt, u64> {
        let attempt = self.limiter.begin(login, network, now_ms);
        let paused = self.paused_until_ms.borrow();
        let until_ms = attempt.lanes.iter().filter_map(|lane| paused.get(lane)).max();
        match until_ms.and_then(|until_ms| until_ms.checked_sub(now_ms)) {
            None | Some(0) => Ok(attempt),
            Some(pause_ms) => Err(pause_ms.div_ceil(SECOND)),
        }
    }

    fn end_in_failure(&self, attempt: LoginAttempt, now_ms: u64) {
        let mut paused = self.paused_until_ms.borrow_mut();
        for (lane, pause) in attempt.fail() {
            // The pause of attempts at one login from everywhere does not matter here.
            if !matches!(lane, AttemptLane::Elsewhere(_)) {
                let until_ms = now_ms + u64::try_from(pause.as_millis()).unwrap();
                paused.entry(lane).and_modify(|u| *u = until_ms.max(*u)).or_insert(until_ms);
            }
        }
    }

    /// Fails once. Returns the seconds that the attempt would have to wait instead, if any.
    fn fail(&self, login: &Login, network: PeerNetwork, now_ms: u64) -> Option<u64> {
        self.fail_at(Some(login), network, now_ms)
    }

    fn fail_at(&self, login: Option<&Login>, network: PeerNetwork, now_ms: u64) -> Option<u64> {
        let attempt = match self.begin(login, network, now_ms) {
            Ok(attempt) => attempt,
            Err(wait_s) => return Some(wait_s),
        };
        self.end_in_failure(attempt, now_ms);
        None
    }

    /// Checks whether an attempt would be slowed, without making one.
    fn is_slowed(&self, login: &Login, network: PeerNetwork) -> bool {
        let attempt = self.limiter.begin(Some(login), network, START);
        let is_slowed = attempt.is_slowed;
        attempt.cancel();
        is_slowed
    }

    /// Logs in once and returns whether that was possible without waiting.
    fn succeed(&self, login: &Login, network: PeerNetwork, now_ms: u64) -> bool {
        self.begin(Some(login), network, now_ms).map(LoginAttempt::succeed).is_ok()
    }
}

/// Returns how many attempts an attacker gets who tries whenever it is allowed.
fn attempts_within(scene: &RateLimiterFixture, login: &Login, from_ms: u64, until_ms: u64) -> u64 {
    let (mut now_ms, mut count) = (from_ms, 0);
    while now_ms < until_ms && count < 1_000 {
        match scene.fail(login, HOME, now_ms) {
            None => count += 1,
            Some(retry_after_s) => now_ms += retry_after_s * SECOND,
        }
    }
    count
}

#[test]
fn after_five_failures_the_pauses_double_up_to_fifteen_minutes() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    for _ in 0..5 {
        assert_eq!(scene.fail(&ada, HOME, START), None);
    }
    let mut now_ms = START;
    for pause_s in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        assert_eq!(scene.fail(&ada, HOME, now_ms), Some(pause_s));
        assert_eq!(scene.fail(&ada, HOME, now_ms + pause_s * SECOND - 1), Some(1));
        now_ms += pause_s * SECOND;
        assert_eq!(scene.fail(&ada, HOME, now_ms), None, "after {pause_s} s");
    }
    // No failure was forgiven until here, because that takes 15 minutes. From here on, the longest
    // pause applies.
    for _ in 0..20 {
        now_ms += 15 * MINUTE;
        assert_eq!(scene.fail(&ada, HOME, now_ms), None);
    }
    assert!(scene.fail(&ada, HOME, now_ms).unwrap() <= 15 * 60);
    assert_eq!(scene.fail(&login("bob"), HOME, now_ms), None, "others are not affected");
}

#[test]
fn the_longest_pause_is_fifteen_minutes() {
    let failures =
        (0..100).fold(FailureCount::default(), |f, _| f.plus_one(RateLimit::PER_LOGIN, START));
    assert_eq!(failures.pause_ms(RateLimit::PER_LOGIN, START), 15 * MINUTE);
}

#[test]
fn patience_gives_an_attacker_a_hundred_attempts_a_day() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    let first_day = attempts_within(&scene, &ada, START, START + DAY);
    let second_day = attempts_within(&scene, &ada, START + DAY, START + 2 * DAY);
    assert!((96..=15 + 96).contains(&first_day), "{first_day}");
    assert!((90..=97).contains(&second_day), "{second_day}");
}

#[test]
fn a_stranger_s_guesses_keep_nobody_else_out() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    for number in 10..1_000 {
        while scene.fail(&ada, network(number), START).is_none() {}
    }
    assert!(scene.succeed(&ada, HOME, START));
}

#[test]
fn a_success_clears_the_login_for_its_network() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    for _ in 0..4 {
        assert_eq!(scene.fail(&ada, HOME, START), None);
    }
    assert!(scene.succeed(&ada, HOME, START));
    for _ in 0..5 {
        assert_eq!(scene.begin(Some(&ada), HOME, START).unwrap().failures_count, 0);
    }
}

#[test]
fn from_a_known_network_attempts_are_slowed_past_five_failures_and_not_refused() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    scene.limiter.record_known_network(&ada, HOME);
    for _ in 0..5 {
        assert!(!scene.is_slowed(&ada, HOME));
        assert_eq!(scene.fail(&ada, HOME, START), None);
    }
    let mut now_ms = START;
    for _ in 0..100 {
        assert!(scene.is_slowed(&ada, HOME));
        assert_eq!(scene.fail(&ada, HOME, now_ms), Some(2));
        now_ms += u64::try_from(KNOWN_PAUSE.as_millis()).unwrap();
        assert_eq!(scene.fail(&ada, HOME, now_ms), None);
    }
    // In other networks, nothing has changed.
    assert!(!scene.is_slowed(&ada, ELSEWHERE));
    assert!(scene.succeed(&ada, HOME, now_ms + 2 * SECOND));
    assert!(!scene.is_slowed(&ada, HOME));
}

#[test]
fn who_waits_at_home_and_leaves_makes_no_failure_disappear() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    scene.limiter.record_known_network(&ada, HOME);
    for _ in 0..5 {
        assert_eq!(scene.fail(&ada, HOME, START), None);
    }
    let begin = || scene.limiter.begin(Some(&ada), HOME, START);
    let many: Vec<_> = (0..200).map(|_| begin()).collect();
    drop(many);
    assert!(scene.is_slowed(&ada, HOME));
    // The same holds for the network, over all logins.
    for index in 0..15 {
        assert_eq!(scene.fail(&login(&format!("user{index}")), HOME, START), None);
    }
    let names: Vec<_> = (0..20).map(|index| login(&format!("own{index}"))).collect();
    for own in &names {
        scene.limiter.record_known_network(own, HOME);
        drop(scene.begin(Some(own), HOME, START).unwrap());
    }
    assert_eq!(scene.fail(&login("bob"), HOME, START), Some(1));
}

#[test]
fn from_a_known_network_nobody_is_refused_for_others_guesses() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    assert!(scene.succeed(&ada, HOME, START));
    for index in 0..20 {
        assert_eq!(scene.fail(&login(&format!("user{index}")), HOME, START), None);
    }
    assert_eq!(scene.fail(&login("bob"), HOME, START), Some(1));
    assert!(scene.succeed(&ada, HOME, START));
}

#[test]
fn a_burst_gets_no_further_than_a_row() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    let begin = || scene.limiter.begin(Some(&ada), HOME, START);
    let running: Vec<_> = (0..100).map(|_| begin()).filter(|one| !one.is_slowed).collect();
    assert_eq!(running.len(), 5);
    for attempt in running {
        scene.end_in_failure(attempt, START);
    }
    assert_eq!(scene.fail(&ada, HOME, START), Some(1));
}

#[test]
fn an_attempt_that_was_not_made_counts_against_its_network_alone() {
    let (scene, ada) = (RateLimiterFixture::new(), login("ada"));
    for _ in 0..20 {
        let attempt = scene.begin(Some(&ada), HOME, START).unwrap();
        assert_eq!((attempt.failures_count, attempt.is_slowed), (0, false));
    }
    assert!(scene.is_slowed(&login("bob"), HOME));
    // The count stays the same however many attempts wait then.
    for _ in 0..100 {
        drop(scene.begin(Some(&ada), HOME, START).unwrap());
    }
    assert_eq!(scene.fail(&login("bob"), HOME, START), None);
    assert_eq!(scene.fail(&login("bob"), HOME, START), Some(2));
    // An attempt that the server could not try is not counted.
    for _ in 0..100 {
        scene.begin(Some(&ada), network(3), START).unwrap().cancel();
    }
    assert!(scene.succeed(&ada, ELSEWHERE, START));
    // In a known network a waiting attempt costs nothing: a client can only try.
    for _ in 0..100 {
        drop(scene.begin(Some(&ada), ELSEWHERE, START).unwrap());
    }
    assert!(!scene.is_slowed(&login("bob"), ELSEWHERE));
}

#[test]
fn subnets_of_one_home_and_homes_of_one_site_have_growing_allowances() {
    let subnet = |site: u16, home: u16, subnet: u16| {
        PeerNetwork::from_address([0x2001, 0xdb8, site, home << 8 | subnet, 0, 0, 0, 1].into())
    };
    let scene = RateLimiterFixture::new();
    let count = |networks: &mut dyn Iterator<Item = PeerNetwork>| {
        let attempts = networks.flat_map(|network| (0..20).map(move |number| (network, number)));
        let free = attempts.take_while(|(network, number)| {
            scene.fail(&login(&format!("user{number}")), *network, START).is_none()
        });
        free.count()
    };
    // One home's 256 subnets count as four clients, and one site's 256 homes as sixteen.
    assert_eq!(count(&mut (0..256).map(|number| subnet(1, 1, number))), 4 * 20);
    assert_eq!(count(&mut (2..256).map(|number| subnet(1, number, 0))), (16 - 4) * 20);
    assert_eq!(count(&mut (0..1).map(|number| subnet(2, 1, number))), 20);
}

#[test]
fn a_network_is_slowed_over_all_logins() {
    let scene = RateLimiterFixture::new();
    for index in 0..20 {
        assert_eq!(scene.fail(&login(&format!("user{index}")), HOME, START), None);
    }
    assert_eq!(scene.fail(&login("ada"), HOME, START), Some(1));
    // A success elsewhere, or with one's own account, does not reset the network.
    assert!(scene.succeed(&login("ada"), ELSEWHERE, START));
    assert_eq!(scene.fail(&login("ada"), HOME, START), Some(1));
    assert_eq!(scene.fail(&login("ada"), HOME, START + SECOND), None);
}

#[test]
fn successes_do_not_use_up_a_network() {
    let scene = RateLimiterFixture::new();
    for index in 0..100 {
        assert!(scene.succeed(&login(&format!("user{index}")), HOME, START));
    }
    assert_eq!(scene.fail(&login("ada"), HOME, START), None);
}

#[test]
fn attempts_without_a_login_count_against_their_network_alone() {
    let scene = RateLimiterFixture::new();
    for _ in 0..20 {
        assert_eq!(scene.fail_at(None, HOME, START), None);
    }
    assert_eq!(scene.fail_at(None, HOME, START), Some(1));
    assert_eq!(scene.fail_at(None, HOME, START + SECOND), None);
    assert_eq!(scene.fail_at(None, HOME, START + SECOND), Some(2));
    // Where it has been right before, the pause stays the same.
    scene.begin(None, ELSEWHERE, START).unwrap().succeed();
    for _ in 0..20 {
        assert_eq!(scene.fail_at(None, ELSEWHERE, START), None);
    }
    for second in (0..20).step_by(2) {
        assert_eq!(scene.fail_at(None, ELSEWHERE, START + second * SECOND), Some(2));
        assert_eq!(scene.fail_at(None, ELSEWHERE, START + (second + 2) * SECOND), None);
    }
}

#[test]
fn guesses_at_another_secret_slow_no_login() {
    let lanes = |login: Option<&Login>| {
        let limiter = RateLimiter::new(RateLimit::PER_NETWORK);
        let attempts = (0..30).map(|_| limiter.begin(login, HOME, START));
        attempts.flat_map(LoginAttempt::fail).map(|(lane, _)| lane).collect::<Vec<_>>()
    };
    let (of_login, of_secret) = (lanes(Some(&login("ada"))), lanes(None));
    assert!(!of_login.is_empty() && !of_secret.is_empty());
    assert!(of_login.iter().all(|lane| !of_secret.contains(lane)));
}

#[test]
fn accounts_are_made_so_often_and_then_with_pauses() {
    let limiter = RateLimiter::new(RateLimit::PER_REGISTRAR);
    for _ in 0..60 {
        limiter.count(HOME, START).unwrap();
    }
    assert_eq!(limiter.count(HOME, START), Err(TooManyAttempts { retry_after_s: 1 }));
    limiter.count(HOME, START + SECOND).unwrap();
    limiter.count(ELSEWHERE, START).unwrap();
}

#[test]
fn a_clock_set_back_makes_nobody_wait_longer() {
    let scene = RateLimiterFixture::new();
    for index in 0..20 {
        let user = login(&format!("user{index}"));
        assert_eq!(scene.fail(&user, HOME, START + 300 * DAY), None);
    }
    let attempt = scene.limiter.begin(Some(&login("ada")), HOME, START);
    for (_, pause) in attempt.fail() {
        assert!(pause <= Duration::from_mins(15), "{pause:?}");
    }
    let counted = RateLimiter::new(RateLimit::PER_NETWORK);
    for _ in 0..20 {
        counted.count(HOME, START + 300 * DAY).unwrap();
    }
    let TooManyAttempts { retry_after_s } = counted.count(HOME, START).unwrap_err();
    assert!(retry_after_s <= 15 * 60, "{retry_after_s}");
    counted.count(HOME, START + retry_after_s * SECOND).unwrap();
}

#[test]
fn the_memory_is_bounded() {
    let scene = RateLimiterFixture::new();
    let count_max = KEYS_COUNT_MAX.get();
    for index in 0..u32::try_from(count_max).unwrap() + 10 {
        let (login, network) = (login(&format!("u{index}")), network(index));
        assert_eq!(scene.fail(&login, network, START), None);
        scene.limiter.record_known_network(&login, network);
    }
    let counts = scene.limiter.counts();
    let lengths = (counts.by_login.len(), counts.by_network.len(), counts.known.len());
    assert_eq!(lengths, (count_max, count_max, count_max));
}

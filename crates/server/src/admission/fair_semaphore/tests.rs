use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use accounts::Login;
use tokio::time::Instant;

use super::*;
use crate::admission::fair_semaphore::permit_request::AttemptDigest;
use crate::admission::fair_semaphore::queue::WAITING_COUNT_MAX;
use crate::admission::peer_network::PeerNetwork;

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(1_500);

type PermitFuture<K> = Pin<Box<dyn Future<Output = Result<FairPermit<K>, OverloadError>>>>;

impl AdmissionGroup for u16 {}

fn turns(count: usize) -> Arc<FairSemaphore<u16>> {
    FairSemaphore::new(count, "too many")
}

fn taking<K: AdmissionGroup>(
    turns: &Arc<FairSemaphore<K>>,
    applicant: PermitRequest<K>,
) -> PermitFuture<K> {
    let turns = Arc::clone(turns);
    Box::pin(async move { turns.acquire(applicant).await })
}

fn known<K>(key: K) -> PermitRequest<K> {
    PermitRequest::known(key)
}

fn stranger<K>(key: K) -> PermitRequest<K> {
    PermitRequest { class: RequestClass::Unknown, ..known(key) }
}

/// The lane of one login in the owner's network.
fn home() -> AttemptLane {
    AttemptLane::Here(Some(login("ada")), PeerNetwork::from_address(IpAddr::from([192, 0, 2, 1])))
}

/// A request in that lane with this password.
fn at_home(password: u64) -> PermitRequest<u16> {
    PermitRequest { lanes: vec![home()], digest: Some(AttemptDigest(password)), ..known(1) }
}

/// Releases the permit of a failed attempt.
fn fail<K: AdmissionGroup>(permit: FairPermit<K>, pause: Duration) {
    for lane in &permit.lanes {
        permit.semaphore.pause(lane.clone(), pause);
    }
    drop(permit);
}

/// Starts guessers in the owner's network that try one password after the other without a pause.
fn guess_at_home(turns: &Arc<FairSemaphore<u16>>, guessers_count: u64, pause: Duration) {
    for guesser in 0..guessers_count {
        let turns = Arc::clone(turns);
        tokio::spawn(async move {
            for guess in 1_u64.. {
                if let Ok(permit) = turns.acquire(at_home(guess << 32 | guesser)).await {
                    fail(permit, pause);
                }
            }
        });
    }
}

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

/// Returns a request's permit if it has one after all other tasks have run.
async fn served<K: AdmissionGroup>(taking: &mut PermitFuture<K>) -> Option<FairPermit<K>> {
    tokio::select! {
        biased;
        permit = taking => Some(permit.unwrap()),
        () = tokio::task::yield_now() => None,
    }
}

/// Returns the request that has a permit now, and the permit.
async fn next_of<K: AdmissionGroup>(all: &mut [PermitFuture<K>]) -> (usize, FairPermit<K>) {
    for (index, taking) in all.iter_mut().enumerate() {
        if let Some(permit) = served(taking).await {
            return (index, permit);
        }
    }
    unreachable!("one of those who wait has the turn")
}

/// Returns the requests that have lost their place.
async fn refused<K: AdmissionGroup>(all: &mut [PermitFuture<K>]) -> Vec<usize> {
    for taking in &mut *all {
        assert!(served(taking).await.is_none(), "nobody is refused at once");
    }
    tokio::time::sleep(REFUSAL_DELAY).await;
    let mut refused = Vec::new();
    for (index, taking) in all.iter_mut().enumerate() {
        tokio::select! {
            biased;
            permit = taking => refused.extend(permit.is_err().then_some(index)),
            () = tokio::task::yield_now() => {}
        }
    }
    refused
}

/// Lets all requests wait.
async fn wait_all<K: AdmissionGroup>(
    applicants: impl Iterator<Item = PermitFuture<K>>,
) -> Vec<PermitFuture<K>> {
    let mut all: Vec<_> = applicants.collect();
    for taking in &mut all {
        assert!(served(taking).await.is_none());
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_hundred_of_one_key_keep_another_key_waiting_for_one() {
    let turns = turns(2);
    let first = taking(&turns, known(1)).await.unwrap();
    let second = taking(&turns, known(1)).await.unwrap();
    let mut many = wait_all((0..50).map(|_| taking(&turns, known(1)))).await;
    let mut other = taking(&turns, PermitRequest { rank: 9, ..known(2) });
    assert!(served(&mut other).await.is_none());
    drop(first);
    assert!(served(&mut many[0]).await.is_none());
    let other = served(&mut other).await;
    assert!(other.is_some());
    drop(second);
    assert!(served(&mut many[0]).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_network_that_had_no_turn_goes_before_those_that_ask_without_end() {
    let turns = turns(1);
    for network in 1..=60 {
        drop(taking(&turns, stranger(network)).await.unwrap());
    }
    let held = taking(&turns, stranger(1)).await.unwrap();
    let mut many = wait_all((0..600).map(|n| taking(&turns, stranger(1 + n % 60)))).await;
    let mut bob = taking(&turns, stranger(99));
    assert!(served(&mut bob).await.is_none());
    drop(held);
    let bob = served(&mut bob).await.expect("it was never served");
    // Bob's next attempt waits until each of them has had one permit.
    let mut again = taking(&turns, stranger(99));
    assert!(served(&mut again).await.is_none());
    drop(bob);
    for round in 0..60 {
        assert!(served(&mut again).await.is_none(), "{round}");
        let (index, permit) = next_of(&mut many).await;
        drop(many.swap_remove(index));
        drop(permit);
    }
    assert!(served(&mut again).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn of_networks_that_had_no_turn_the_one_of_which_the_fewest_wait_is_first() {
    let turns = turns(1);
    let held = taking(&turns, stranger(0)).await.unwrap();
    let mut many = wait_all((0..8).map(|n| taking(&turns, stranger(1 + n / 4)))).await;
    let mut bob = taking(&turns, stranger(99));
    assert!(served(&mut bob).await.is_none());
    drop(held);
    drop(served(&mut bob).await.unwrap());
    drop(served(&mut many[0]).await.unwrap());
    drop(served(&mut many[4]).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_lowest_rank_of_a_network_is_served_first() {
    let turns = turns(1);
    let first = taking(&turns, known(9)).await.unwrap();
    let mut guess = taking(&turns, PermitRequest { rank: 7, ..stranger(1) });
    let mut owner = taking(&turns, stranger(1));
    assert!(served(&mut guess).await.is_none() && served(&mut owner).await.is_none());
    drop(first);
    assert!(served(&mut guess).await.is_none());
    assert!(served(&mut owner).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn known_applicants_have_three_turns_of_four_and_registrations_the_last() {
    let turns = turns(1);
    let held = taking(&turns, known(0)).await.unwrap();
    let new = |key| PermitRequest { class: RequestClass::Registration, ..known(key) };
    let applicants = [new(1), stranger(2), stranger(3), known(4), known(5), known(6), known(7)];
    let mut all = wait_all(applicants.into_iter().map(|one| taking(&turns, one))).await;
    drop(held);
    let mut order = Vec::new();
    while !all.is_empty() {
        let (index, permit) = next_of(&mut all).await;
        order.push(permit.key);
        drop(all.swap_remove(index));
    }
    assert_eq!(order, [4, 5, 2, 6, 7, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lane_has_one_turn_at_a_time_and_a_pause_after_a_failure() {
    let turns = turns(2);
    let in_lane = |key, name| {
        let lanes = vec![AttemptLane::Elsewhere(login(name))];
        taking(&turns, PermitRequest { lanes, ..stranger(key) })
    };
    let first = in_lane(1, "ada").await.unwrap();
    let mut second = in_lane(2, "ada");
    assert!(served(&mut second).await.is_none());
    drop(in_lane(3, "bob").await.unwrap());
    fail(first, PAUSE);
    assert!(served(&mut second).await.is_none());
    let begun = Instant::now();
    drop(second.await.unwrap());
    assert_eq!(begun.elapsed().as_millis() / 10, PAUSE.as_millis() / 10);
    // After a success there is no pause.
    drop(in_lane(2, "ada").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_as_told_goes_before_those_who_guess_at_home() {
    for guessers_count in [8, 40, 200] {
        let turns = turns(1);
        guess_at_home(&turns, guessers_count, PAUSE);
        tokio::time::sleep(Duration::from_mins(1)).await;
        let attack = Instant::now();
        while taking(&turns, at_home(0)).await.is_err() {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let waited = attack.elapsed();
        let most = SLOWED_WAIT_MAX + Duration::from_secs(2) + 2 * PAUSE;
        assert!(waited <= most, "{guessers_count}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_long_pause_who_comes_back_as_told_is_first() {
    let turns = turns(1);
    let pause = Duration::from_mins(1);
    guess_at_home(&turns, 40, pause);
    tokio::time::sleep(Duration::from_secs(90)).await;
    let (begun, mut tries) = (Instant::now(), 1);
    while taking(&turns, at_home(0)).await.is_err() {
        tries += 1;
        tokio::time::sleep(Duration::from_secs(turns.retry_after_s(&[home()]))).await;
    }
    assert!(begun.elapsed() <= pause + Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(tries <= 3, "{tries}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_refused_at_once() {
    let turns = turns(1);
    turns.pause(home(), Duration::from_mins(15));
    let begun = Instant::now();
    assert!(taking(&turns, at_home(1)).await.is_err());
    assert_eq!(begun.elapsed().as_secs(), REFUSAL_DELAY.as_secs());
    let told = turns.retry_after_s(&[home()]);
    assert_eq!(told, 15 * 60 - REFUSAL_DELAY.as_secs() - RETURN_EARLY.as_secs());
    // The longest pause counts.
    turns.pause(home(), Duration::from_secs(1));
    tokio::time::sleep(Duration::from_mins(14)).await;
    assert!(taking(&turns, at_home(1)).await.is_err());
    tokio::time::sleep(Duration::from_secs(50)).await;
    drop(taking(&turns, at_home(1)).await.unwrap());
    assert_eq!(turns.retry_after_s(&[home()]), RETRY_AFTER_S);
}

#[tokio::test(start_paused = true)]
async fn those_who_come_back_as_told_are_served_in_the_order_in_which_they_came() {
    let turns = turns(1);
    let all = (0..20).map(|guesser| {
        let turns = Arc::clone(&turns);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(guesser)).await;
            loop {
                if let Ok(permit) = turns.acquire(at_home(guesser)).await {
                    fail(permit, PAUSE);
                    return Instant::now();
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        })
    });
    let mut times = Vec::new();
    for one in all.collect::<Vec<_>>() {
        times.push(one.await.unwrap());
    }
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_place_in_the_order_is_of_one_turn_and_of_one_return() {
    let turns = turns(1);
    let held = taking(&turns, known(9)).await.unwrap();
    // One request twice at a time, then another: after the first permit, the second comes last.
    let mut all = wait_all([7, 7, 8].map(|p| taking(&turns, at_home(p))).into_iter()).await;
    drop(held);
    let first = served(&mut all[0]).await.unwrap();
    drop(first);
    assert!(served(&mut all[1]).await.is_none());
    drop(served(&mut all[2]).await.unwrap());
    drop(served(&mut all[1]).await.unwrap());

    // A request that returns too late counts as new.
    let held = taking(&turns, known(9)).await.unwrap();
    assert!(taking(&turns, at_home(7)).await.is_err());
    tokio::time::sleep(WAIT_MAX + RETURN_MAX).await;
    let mut all = wait_all([8, 7].map(|p| taking(&turns, at_home(p))).into_iter()).await;
    drop(held);
    assert!(served(&mut all[1]).await.is_none());
    drop(served(&mut all[0]).await.unwrap());
    drop(served(&mut all[1]).await.unwrap());
    assert_eq!(turns.state().arrivals.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_the_network_of_which_most_wait() {
    let turns = turns(1);
    let held = taking(&turns, known(0)).await.unwrap();
    let count = u16::try_from(WAITING_COUNT_MAX).unwrap();
    let mut many = wait_all((0..count).map(|n| taking(&turns, stranger(1 + n % 60)))).await;
    // From another network: the latest request of one of those networks loses its place.
    let mut bob = taking(&turns, stranger(99));
    assert!(served(&mut bob).await.is_none());
    let refused_ones = refused(&mut many).await;
    assert_eq!(refused_ones.len(), 1);
    assert!(refused_ones[0] >= many.len() - 60, "{refused_ones:?}");
    // From one of them: the newcomer loses its place.
    assert_eq!(refused(&mut [taking(&turns, stranger(1))]).await, [0]);
    // Known requests have a queue of their own.
    let mut ada = taking(&turns, known(1));
    assert!(served(&mut ada).await.is_none());
    drop(held);
    drop(served(&mut ada).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_subnets_of_one_home_count_together() {
    let turns: Arc<FairSemaphore<PeerNetwork>> = FairSemaphore::new(1, "too many");
    let subnet = |home: u16, subnet: u16| {
        PeerNetwork::from_address(IpAddr::from([0x2001, 0xdb8, 1, home << 8 | subnet, 0, 0, 0, 1]))
    };
    let held = taking(&turns, known(subnet(0, 0))).await.unwrap();
    let count = u16::try_from(WAITING_COUNT_MAX).unwrap();
    let subnets = (0..count).map(|n| taking(&turns, stranger(subnet(1, n % 256))));
    let mut many = wait_all(subnets).await;
    // Four requests of one subnet elsewhere are fewer than 256 times four.
    let others =
        (0..5).map(|_| taking(&turns, stranger(PeerNetwork::from_address([192, 0, 2, 1].into()))));
    let mut others = wait_all(others).await;
    assert_eq!(refused(&mut many).await.len(), 5);
    // The same holds in the order of permits: the one that is held belongs to the same home.
    drop(held);
    drop(served(&mut others[0]).await.unwrap());
    drop(served(&mut many[0]).await.unwrap());
    drop(served(&mut others[1]).await.unwrap());
    drop(served(&mut many[1]).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_told_and_leaves_nothing_behind() {
    let turns = turns(1);
    let held = taking(&turns, known(1)).await.unwrap();
    let begun = Instant::now();
    assert_eq!(taking(&turns, known(1)).await.map(drop), Err(OverloadError::Busy("too many")));
    assert_eq!(begun.elapsed().as_secs(), WAIT_MAX.as_secs());
    drop(wait_all((0..100).map(|_| taking(&turns, stranger(1)))).await);
    drop(held);
    drop(taking(&turns, known(2)).await.unwrap());
    let state = turns.state();
    let waiting: usize = state.queues.iter().map(queue::PermitQueue::len).sum();
    assert_eq!((state.free_count, state.running.len(), waiting), (1, 0, 0));
}

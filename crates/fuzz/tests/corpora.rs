//! Runs every target on its kept inputs, and on some neighbors of each: cut off, and with a changed
//! byte.

use fuzz::{FuzzTarget, corpus};

/// Number of places of an input at which it is cut off, and changed.
const NEIGHBOURS_COUNT: usize = 4;
/// Targets that take a moment for each input, because they open files or sync.
const SLOW: [&str; 3] = ["messages", "answers", "databases"];
/// Number of inputs of the slow targets that are run, spread over all of them.
const SLOW_INPUTS_MAX: usize = 60;
const FIRST_COUNT: usize = 20;

fn check(name: &str) {
    let target = fuzz::target(name).expect("a target");
    let inputs = corpus::inputs(target).expect("its corpus can be read");
    // The first inputs are the seeds, and those that once broke the target.
    let step = if SLOW.contains(&name) { inputs.len().div_ceil(SLOW_INPUTS_MAX) } else { 1 };
    let chosen = |place: &usize| *place < FIRST_COUNT || place.is_multiple_of(step);
    for (place, input) in inputs.iter().enumerate().filter(|(place, _)| chosen(place)) {
        run(target, place, input);
        let count = if SLOW.contains(&name) { 0 } else { NEIGHBOURS_COUNT };
        for number in 0..count.min(input.len()) {
            // The places are spread over the input, and differ between inputs.
            let middle = (place * 7 + number * input.len() / count) % input.len();
            run(target, place, &input[..middle]);
            let mut changed = input.clone();
            changed[middle] = changed[middle].wrapping_add(1 << (place % 8));
            run(target, place, &changed);
        }
    }
}

fn run(target: &FuzzTarget, place: usize, input: &[u8]) {
    let run = || (target.run)(input);
    let passes = std::panic::catch_unwind(run).is_ok();
    assert!(passes, "{}: input {place}, or near it: {}", target.name, input.escape_ascii());
}

macro_rules! targets {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test] fn $test() { check($name); })*

        #[test]
        fn every_target_is_tested() {
            let names: Vec<_> = fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}
targets! {
    contents: "contents", keys: "keys", sealed: "sealed", deliveries: "deliveries",
    timestamps: "timestamps",
    phrases: "phrases", protobuf: "protobuf", json: "json", pages: "pages", events: "events",
    messages: "messages", answers: "answers", sync_requests: "actual-sync",
    tries: "actual-tries", records: "actual-records", archives: "actual-archives",
    databases: "databases", logs: "logs",
}

#[test]
fn seeds_reach_what_they_are_for() {
    let changes = (fuzz::target("contents").unwrap().seeds)();
    assert!(changes.iter().all(|content| crdt::Change::decode(content).is_ok()));
    let deliveries = (fuzz::target("deliveries").unwrap().seeds)();
    let messages =
        deliveries.iter().map(|plaintext| mail_store::MailDelivery::decode(plaintext).unwrap());
    assert_eq!(messages.map(|delivery| delivery.message.len()).collect::<Vec<_>>(), [5, 1_000]);
}

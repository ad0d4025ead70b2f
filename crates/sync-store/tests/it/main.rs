//! Tests of vaults in all storages: one suite for all (`conformance`), and tests for files or
//! PostgreSQL alone.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, also in its helpers, a panic is the report"
)]

mod compare;
mod devices;
mod erasures;
mod files;
mod fixture;
mod gateway;
mod gateway_in_postgres;
mod in_postgres;
mod messages;
mod transfer;

use crdt::{Fingerprint, Message, NodeId, Timestamp};
use sync_store::{MessageBatch, Quota, Result, StoreOutcome, Vault};

/// Runs every test of the suite on a kind of vault.
macro_rules! conformance {
    ($kind:ident, $bed:expr, $($suite:ident: [$($test:ident),* $(,)?]),* $(,)?) => {
        mod $kind {
            $(mod $suite {
                $(#[tokio::test]
                async fn $test() {
                    crate::$suite::$test(&$bed).await;
                })*
            })*
        }
    };
}

/// Applies the one list of tests to each kind of vault.
macro_rules! suite {
    ($($kind:ident: $bed:expr),* $(,)?) => {$(
        conformance! { $kind, $bed,
            messages: [
                storing_twice_stores_once,
                one_message_twice_in_a_request_is_one_message,
                another_content_refuses_the_whole_request,
                an_error_names_only_so_many_conflicts,
                an_empty_request_changes_nothing,
                pages_end_at_their_count_or_bytes_and_follow_each_other,
                empty_and_large_contents_come_back,
                any_batches_make_their_union_with_its_fingerprint,
                vaults_do_not_see_each_other,
                a_full_account_takes_nothing_new,
                what_follows_a_cursor_is_stored_only_if_nothing_came_between,
                messages_are_found_by_timestamp,
                sessions_at_once_count_every_timestamp_once,
                a_reader_beside_writers_misses_nothing,
            ],
            devices: [
                clients_are_listed_in_order_of_registration_until_removed,
                a_push_moves_the_cursor_of_a_client_that_had_everything,
                a_refused_push_is_not_noted,
                a_pull_is_noted,
                a_client_says_who_it_is_and_what_it_has_to_send,
                who_is_not_registered_is_not_noted,
            ],
            erasures: [
                erased_contents_are_gone_and_the_sums_follow,
                what_is_not_as_it_was_taken_for_is_left,
            ],
            compare: [
                windows_add_up_to_the_state,
                parts_are_cut_by_count_and_add_up,
                messages_of_one_moment_stay_together,
                items_are_those_of_their_ranges,
                the_newest_message_is_found_among_many,
                a_rebuilt_vault_is_as_it_was,
            ],
            gateway: [
                an_exchange_shows_what_is_new_in_order_and_keeps_the_record,
                a_gateway_that_declines_stores_nothing,
                the_first_content_of_a_timestamp_stays,
                exchange_and_store_make_the_same_vault,
                messages_since_a_timestamp_are_those_that_had_arrived,
                a_look_is_the_record_and_the_first_messages,
                a_cleared_vault_goes_on_counting,
                pieces_are_kept_by_blob_and_number,
                a_record_names_only_a_blob_that_is_whole,
                a_large_record_comes_back,
                exchanges_at_once_lose_nothing,
                a_reader_beside_exchanges_sees_a_record_that_fits,
            ],
        }
    )*};
}

suite! {
    sqlite: crate::fixture::sqlite(),
    postgres: crate::fixture::postgres().await,
    plproxy: crate::fixture::plproxy().await,
}

fn timestamp(millis: u64) -> Timestamp {
    Timestamp::new(millis, 0, NodeId(7)).unwrap()
}

fn message(millis: u64, content: &str) -> Message {
    Message { timestamp: timestamp(millis), content: content.to_owned().into() }
}

fn fingerprint<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Fingerprint {
    let mut sum = Fingerprint::default();
    for message in messages {
        sum += Fingerprint::from_message(message.timestamp, &message.content);
    }
    sum
}

async fn store(vault: &Vault, messages: Vec<Message>) -> Result<StoreOutcome> {
    vault.store(MessageBatch::new(messages)?, Quota::UNLIMITED, None).await
}

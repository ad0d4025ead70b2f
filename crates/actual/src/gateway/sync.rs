//! Handles `POST /sync/sync`: stores the app's messages and returns those that it lacks, in one
//! request.
//!
//! # Invariants
//! - Messages, trie and gateway state change in one transaction, which checks the request again.
//! - A response has the messages from before the request, and the trie after it: the request's own
//!   messages are not sent back.
//! - The trie is pruned once per request, so that it is the published server's byte for byte.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use crdt::{Message, Timestamp};
use server::{
    MESSAGE_BYTES, MemoryOwner, MemoryReservation, StreamAborted, body_from_channel, page_bytes,
};
use sync_store::{MessageBatch, UpdateStateFn, Vault};
use tokio::sync::mpsc;

use crate::gateway::budget::{check_sync, is_id};
use crate::gateway::error::ActualError;
use crate::gateway::form::raw;
use crate::gateway::head::RequestHead;
use crate::gateway::session::token;
use crate::gateway::state::ActualGateway;
use crate::gateway_state::{BudgetState, with_trie};
use crate::trie::MerkleTrie;
use crate::wire::{ActualSyncRequest, SYNC_MEDIA_TYPE, put_merkle, put_message};
use crate::{content, since};

const METHOD: HeaderName = HeaderName::from_static("x-actual-sync-method");
/// The maximum size of a page of messages in memory; one more page may wait for the network.
const PAGE_BYTES_MAX: usize = 1 << 20;
const PAGE_COUNT_MAX: usize = PAGE_BYTES_MAX / MESSAGE_BYTES;
const PAGES_WAITING_MAX: usize = 1;
/// The number of messages that the storing transaction reads for the response, on the writer's
/// thread.
const FIRST_COUNT_MAX: usize = 500;
/// The maximum size of a request that is read before the token is checked, together with the rest.
const UNPROVEN_BYTES_MAX: u64 = 64 << 10;

pub(crate) async fn sync(
    State(gateway): State<Arc<ActualGateway>>,
    request: Request,
) -> Result<Response, ActualError> {
    let head = RequestHead::from_request(&request);
    let (token, address) = (token(&head.headers, None)?, head.address);
    // A compressed body has no known length.
    let length = request.body().size_hint().upper();
    let holder = if length.is_some_and(|length| length <= UNPROVEN_BYTES_MAX) {
        MemoryOwner::anonymous(address)
    } else {
        let session = gateway.session(&head, None).await?;
        MemoryOwner::for_account(session.unlocked.account, address)
    };
    let mut asked_room = gateway.services.memory_reservation(holder);
    let otherwise = ActualError::internal("a sync of another media type");
    let body = raw(&gateway, request, otherwise).await?;
    let body = gateway.incoming(body, gateway.settings.sync_bytes_max, true);
    let body = body.whole(&mut asked_room).await?;
    let opener = Arc::clone(&gateway);
    let opened = gateway.services.blocking(move |_| {
        let session = opener.authenticate(&token, address)?;
        opener.record_activity(&session);
        let (asked, batch) = decode(body)?;
        if !is_id(&asked.file_id) {
            return Err(ActualError::INVALID_FILE_ID);
        }
        let id = session.unlocked.sub_vault_id(&asked.file_id);
        let vault =
            opener.open_sub_vault(&session.unlocked, &id)?.ok_or(ActualError::FILE_NOT_FOUND)?;
        Ok((asked, batch, vault, session.unlocked.account))
    });
    let (asked, batch, vault, account) = opened.await??;
    let start = since::after(&asked.since);
    let exchange =
        SyncExchange { gateway, vault, asked, holder: MemoryOwner::for_account(account, address) };
    if batch.is_empty() {
        drop(asked_room);
        exchange.read(start).await
    } else {
        exchange.store(batch, start).await
    }
}

/// A request whose vault is open.
struct SyncExchange {
    gateway: Arc<ActualGateway>,
    vault: Vault,
    asked: SyncParameters,
    holder: MemoryOwner,
}

impl SyncExchange {
    /// Stores the request's messages, and responds with those that were stored before.
    async fn store(
        self,
        batch: MessageBatch,
        start: Option<Timestamp>,
    ) -> Result<Response, ActualError> {
        let Self { gateway, vault, asked, holder } = self;
        gateway.check_disk()?;
        let mut reservation = page_reservation(&gateway, holder).await?;
        let echoes: Vec<_> = batch.timestamps().collect();
        // Without a start, no message is wanted, so none is read.
        let first = start.unwrap_or(Timestamp::ZERO);
        let count_max = if start.is_some() { FIRST_COUNT_MAX } else { 0 };
        let stored = vault.exchange_and_read(batch, amend(asked), first, count_max, PAGE_BYTES_MAX);
        let (exchanged, messages) = stored.await?;
        let known = echoes.len() as u64 - exchanged.stored;
        gateway.services.record_push(exchanged.stored, known);
        let merkle = merkle(&exchanged.state)?;
        let (next, cursor) = (start, exchanged.cursor);
        reservation.grow_to_page(page_bytes(&messages)).await?;
        let mut answer =
            SyncResponseStream { gateway, vault, holder, next, cursor, echoes, merkle };
        let page = answer.encode(&messages, FIRST_COUNT_MAX, reservation)?;
        Ok(answer.respond(page))
    }

    /// Responds with the stored messages.
    async fn read(self, start: Option<Timestamp>) -> Result<Response, ActualError> {
        let Self { gateway, vault, asked, holder } = self;
        let mut reservation = page_reservation(&gateway, holder).await?;
        // Without a start, no message is wanted, so none is read.
        let first = start.unwrap_or(Timestamp::ZERO);
        let count_max = if start.is_some() { PAGE_COUNT_MAX } else { 0 };
        let (recorded, messages) =
            vault.read_with_messages(first, count_max, PAGE_BYTES_MAX).await?;
        let found = BudgetState::decode_record(&recorded.state)?;
        let (budget, _) = found.ok_or(ActualError::FILE_NOT_FOUND)?;
        check_sync(&budget, asked.group_id(), asked.key_id())?;
        let merkle = merkle(&recorded.state)?;
        let (next, cursor, echoes) = (start, recorded.cursor, Vec::new());
        reservation.grow_to_page(page_bytes(&messages)).await?;
        let mut answer =
            SyncResponseStream { gateway, vault, holder, next, cursor, echoes, merkle };
        let page = answer.encode(&messages, PAGE_COUNT_MAX, reservation)?;
        Ok(answer.respond(page))
    }
}

/// Reserves memory for one page of a response.
async fn page_reservation(
    gateway: &ActualGateway,
    holder: MemoryOwner,
) -> Result<MemoryReservation, ActualError> {
    let mut reservation = gateway.services.memory_reservation(holder);
    reservation.reserve_page(PAGE_BYTES_MAX, PAGE_BYTES_MAX).await?;
    Ok(reservation)
}

/// Returns the trie of a gateway state in the form that apps read.
fn merkle(record: &[u8]) -> Result<String, ActualError> {
    let (_, trie) = BudgetState::decode_record(record)?.ok_or(ActualError::FILE_NOT_FOUND)?;
    let mut merkle = String::new();
    MerkleTrie::write_json_of(trie, &mut merkle)?;
    Ok(merkle)
}

/// The parameters of a request, without its messages.
struct SyncParameters {
    file_id: String,
    group_id: String,
    key_id: String,
    since: String,
}

impl SyncParameters {
    fn group_id(&self) -> Option<&str> {
        Some(self.group_id.as_str()).filter(|group| !group.is_empty())
    }

    fn key_id(&self) -> Option<&str> {
        Some(self.key_id.as_str()).filter(|key| !key.is_empty())
    }
}

/// Does all the work of a request that needs the processor and not the disk.
fn decode(body: Bytes) -> Result<(SyncParameters, MessageBatch), ActualError> {
    let request = ActualSyncRequest::from_body(body).map_err(ActualError::internal)?;
    let ActualSyncRequest { messages, file_id, group_id, key_id, since } = request;
    if since.is_empty() {
        return Err(ActualError::SinceRequired);
    }
    let packed = messages.iter().map(|message| content::packed_bytes(&message.content)).sum();
    let mut buffer = BytesMut::with_capacity(packed);
    let messages = messages.into_iter().map(|message| {
        let timestamp = message.timestamp().ok_or(ActualError::NotCanonical)?;
        let content = content::pack_into(&mut buffer, message.is_encrypted, &message.content);
        Ok(Message { timestamp, content })
    });
    let batch = MessageBatch::new_keeping_first(messages.collect::<Result<_, ActualError>>()?);
    Ok((SyncParameters { file_id, group_id, key_id, since }, batch))
}

/// Returns the update of a gateway state for new messages.
fn amend(asked: SyncParameters) -> UpdateStateFn {
    Arc::new(move |record, fresh| {
        let found = BudgetState::decode_record(record)?;
        let (budget, trie) = found.ok_or(ActualError::FILE_NOT_FOUND)?;
        check_sync(&budget, asked.group_id(), asked.key_id())?;
        if fresh.is_empty() {
            return Ok(record.to_vec());
        }
        let mut amended = MerkleTrie::decode(trie)?;
        for timestamp in fresh {
            amended.insert(*timestamp);
        }
        amended.prune();
        Ok(with_trie(record, trie, &amended))
    })
}

/// The part of a response that is still to be sent.
struct SyncResponseStream {
    gateway: Arc<ActualGateway>,
    vault: Vault,
    holder: MemoryOwner,
    /// The start of the next page; `None` at the end.
    next: Option<Timestamp>,
    /// The last sequence number that belongs to the response.
    cursor: u64,
    /// Timestamps of the request's own messages, sorted.
    echoes: Vec<Timestamp>,
    merkle: String,
}

impl SyncResponseStream {
    /// Builds the response. Only a response of one page has a content length; longer ones are
    /// streamed.
    fn respond(mut self, first: Bytes) -> Response {
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(SYNC_MEDIA_TYPE)),
            (METHOD, HeaderValue::from_static("simple")),
        ];
        if self.next.is_none() {
            return (headers, first).into_response();
        }
        let (sender, receiver) = mpsc::channel(PAGES_WAITING_MAX);
        tokio::spawn(async move {
            let mut page = Ok(first);
            loop {
                let is_last = self.next.is_none() || page.is_err();
                let is_sent = sender.send(page.or(Err(StreamAborted))).await.is_ok();
                if is_last || !is_sent {
                    return;
                }
                page = self.page().await.inspect_err(|error| {
                    tracing::error!(%error, "a response was interrupted");
                });
            }
        });
        (headers, body_from_channel(receiver)).into_response()
    }

    /// Reads the next messages, and appends the trie after the last of them.
    async fn page(&mut self) -> Result<Bytes, ActualError> {
        let mut reservation = page_reservation(&self.gateway, self.holder).await?;
        let messages = match self.next {
            Some(start) => {
                self.vault.messages_from(start, self.cursor, PAGE_COUNT_MAX, PAGE_BYTES_MAX).await?
            }
            None => Vec::new(),
        };
        reservation.grow_to_page(page_bytes(&messages)).await?;
        self.encode(&messages, PAGE_COUNT_MAX, reservation)
    }

    /// Encodes a page of at most `count_max` messages without echoes. Its memory reservation lasts
    /// until the page is sent.
    fn encode(
        &mut self,
        messages: &[Message],
        count_max: usize,
        reservation: MemoryReservation,
    ) -> Result<Bytes, ActualError> {
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let is_full = messages.len() >= count_max || bytes >= PAGE_BYTES_MAX;
        let last = messages.last().map(|message| message.timestamp);
        self.next = last.filter(|_| is_full).and_then(since::following);
        let mut page = BytesMut::with_capacity(bytes + 64 * messages.len() + self.merkle.len() + 8);
        let mut count = 0;
        for message in messages {
            if self.echoes.binary_search(&message.timestamp).is_err() {
                let (is_encrypted, content) =
                    content::unpack(&message.content).map_err(ActualError::internal)?;
                put_message(&mut page, message.timestamp, is_encrypted, &content);
                count += 1;
            }
        }
        if self.next.is_none() {
            put_merkle(&mut page, &self.merkle);
        }
        self.gateway.services.record_pull(count);
        Ok(reservation.into_bytes(page))
    }
}

//! `POST /sync/sync`: what an app has is stored, what it lacks is answered, in one round.
//!
//! # Invariants
//! - Messages, trie and record change in one transaction, in which the request is checked again.
//! - An answer has the messages that were there before the request, and the trie after it: what the
//!   request itself brought is not sent back.
//! - The trie is pruned once a request, so that it is the published server's byte for byte.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use crdt::{Message, Timestamp};
use server::stream::{self, Broken};
use server::{Holder, MESSAGE_BYTES, Room, page_bytes};
use sync_store::{Amend, Batch, Vault};
use tokio::sync::mpsc;

use crate::content;
use crate::gateway::Gate;
use crate::gateway::budget::{check_sync, is_id};
use crate::gateway::fault::Fault;
use crate::gateway::form::raw;
use crate::gateway::head::Head;
use crate::gateway::session::token;
use crate::record::{Budget, with_trie};
use crate::since;
use crate::trie::Trie;
use crate::wire::{SYNC_MEDIA_TYPE, SyncRequest, put_merkle, put_message};

const METHOD: HeaderName = HeaderName::from_static("x-actual-sync-method");
/// Bytes of messages of an answer that are in memory at one time; a page more may wait for the
/// network.
const PAGE_BYTES_MAX: usize = 1 << 20;
const PAGE_COUNT_MAX: usize = PAGE_BYTES_MAX / MESSAGE_BYTES;
const PAGES_WAITING_MAX: usize = 1;
/// Messages that are read for the answer on the writer's thread, in the transaction that stores.
const FIRST_COUNT_MAX: usize = 500;
/// Bytes of a request that are read before the token is looked up, in one go with the rest.
const UNPROVEN_BYTES_MAX: u64 = 64 << 10;

pub(crate) async fn sync(
    State(gate): State<Arc<Gate>>,
    request: Request,
) -> Result<Response, Fault> {
    let head = Head::of(&request);
    let (token, address) = (token(&head.headers, None)?, head.address);
    // What is compressed has no length.
    let length = request.body().size_hint().upper();
    let holder = if length.is_some_and(|length| length <= UNPROVEN_BYTES_MAX) {
        Holder::stranger(address)
    } else {
        let session = gate.session(&head, None).await?;
        Holder::of_account(session.unlocked.account, address)
    };
    let mut asked_room = gate.services.room(holder);
    let otherwise = Fault::internal("a sync of another media type");
    let body = raw(&gate, request, otherwise).await?;
    let body = gate.incoming(body, gate.settings.sync_bytes_max, true);
    let body = body.whole(&mut asked_room).await?;
    let opener = Arc::clone(&gate);
    let opened = gate.services.blocking(move |_| {
        let session = opener.authenticate(&token, address)?;
        opener.note(&session);
        let (asked, batch) = decode(body)?;
        if !is_id(&asked.file_id) {
            return Err(Fault::INVALID_FILE_ID);
        }
        let id = session.unlocked.child_named(&asked.file_id);
        let vault = opener.child(&session.unlocked, &id)?.ok_or(Fault::FILE_NOT_FOUND)?;
        Ok((asked, batch, vault, session.unlocked.account))
    });
    let (asked, batch, vault, account) = opened.await??;
    let start = since::after(&asked.since);
    let exchange = Exchange { gate, vault, asked, holder: Holder::of_account(account, address) };
    if batch.is_empty() {
        drop(asked_room);
        exchange.look(start).await
    } else {
        exchange.store(batch, start).await
    }
}

/// A request that has found its vault.
struct Exchange {
    gate: Arc<Gate>,
    vault: Vault,
    asked: Asked,
    holder: Holder,
}

impl Exchange {
    /// Stores what came, and answers what was there before.
    async fn store(self, batch: Batch, start: Option<Timestamp>) -> Result<Response, Fault> {
        let Self { gate, vault, asked, holder } = self;
        gate.check_disk()?;
        let mut room = page_room(&gate, holder).await?;
        let echoes: Vec<_> = batch.timestamps().collect();
        // Where nothing can be asked for, nothing is found.
        let first = start.unwrap_or(Timestamp::ZERO);
        let count_max = if start.is_some() { FIRST_COUNT_MAX } else { 0 };
        let stored = vault.exchange_and_look(batch, amend(asked), first, count_max, PAGE_BYTES_MAX);
        let (exchanged, messages) = stored.await?;
        let known = echoes.len() as u64 - exchanged.stored;
        gate.services.stored(exchanged.stored, known);
        let merkle = merkle(&exchanged.record)?;
        let (next, cursor) = (start, exchanged.cursor);
        room.cover_page(page_bytes(&messages)).await?;
        let mut answer = Answer { gate, vault, holder, next, cursor, echoes, merkle };
        let page = answer.encode(&messages, FIRST_COUNT_MAX, room)?;
        Ok(answer.respond(page))
    }

    /// Answers what is there.
    async fn look(self, start: Option<Timestamp>) -> Result<Response, Fault> {
        let Self { gate, vault, asked, holder } = self;
        let mut room = page_room(&gate, holder).await?;
        // Where nothing can be asked for, nothing is found.
        let first = start.unwrap_or(Timestamp::ZERO);
        let count_max = if start.is_some() { PAGE_COUNT_MAX } else { 0 };
        let (recorded, messages) = vault.look(first, count_max, PAGE_BYTES_MAX).await?;
        let found = Budget::decode_record(&recorded.record)?;
        let (budget, _) = found.ok_or(Fault::FILE_NOT_FOUND)?;
        check_sync(&budget, asked.group_id(), asked.key_id())?;
        let merkle = merkle(&recorded.record)?;
        let (next, cursor, echoes) = (start, recorded.cursor, Vec::new());
        room.cover_page(page_bytes(&messages)).await?;
        let mut answer = Answer { gate, vault, holder, next, cursor, echoes, merkle };
        let page = answer.encode(&messages, PAGE_COUNT_MAX, room)?;
        Ok(answer.respond(page))
    }
}

/// Room for a page of an answer.
async fn page_room(gate: &Gate, holder: Holder) -> Result<Room, Fault> {
    let mut room = gate.services.room(holder);
    room.take_page(PAGE_BYTES_MAX, PAGE_BYTES_MAX).await?;
    Ok(room)
}

/// The trie of a record, as apps read it.
fn merkle(record: &[u8]) -> Result<String, Fault> {
    let (_, trie) = Budget::decode_record(record)?.ok_or(Fault::FILE_NOT_FOUND)?;
    let mut merkle = String::new();
    Trie::write_json_of(trie, &mut merkle)?;
    Ok(merkle)
}

/// A request, apart from its messages.
struct Asked {
    file_id: String,
    group_id: String,
    key_id: String,
    since: String,
}

impl Asked {
    fn group_id(&self) -> Option<&str> {
        Some(self.group_id.as_str()).filter(|group| !group.is_empty())
    }

    fn key_id(&self) -> Option<&str> {
        Some(self.key_id.as_str()).filter(|key| !key.is_empty())
    }
}

/// Everything that takes the processor's time, not the disk's.
fn decode(body: Bytes) -> Result<(Asked, Batch), Fault> {
    let request = SyncRequest::from_body(body).map_err(Fault::internal)?;
    let SyncRequest { messages, file_id, group_id, key_id, since } = request;
    if since.is_empty() {
        return Err(Fault::SinceRequired);
    }
    let packed = messages.iter().map(|message| content::packed_bytes(&message.content)).sum();
    let mut buffer = BytesMut::with_capacity(packed);
    let messages = messages.into_iter().map(|message| {
        let timestamp = message.timestamp().ok_or(Fault::NotCanonical)?;
        let content = content::pack_into(&mut buffer, message.is_encrypted, &message.content);
        Ok(Message { timestamp, content })
    });
    let batch = Batch::of_first(messages.collect::<Result<_, Fault>>()?);
    Ok((Asked { file_id, group_id, key_id, since }, batch))
}

/// What becomes of a record when messages arrive.
fn amend(asked: Asked) -> Amend {
    Arc::new(move |record, fresh| {
        let found = Budget::decode_record(record)?;
        let (budget, trie) = found.ok_or(Fault::FILE_NOT_FOUND)?;
        check_sync(&budget, asked.group_id(), asked.key_id())?;
        if fresh.is_empty() {
            return Ok(record.to_vec());
        }
        let mut amended = Trie::decode(trie)?;
        for timestamp in fresh {
            amended.insert(*timestamp);
        }
        amended.prune();
        Ok(with_trie(record, trie, &amended))
    })
}

/// What is left to be sent.
struct Answer {
    gate: Arc<Gate>,
    vault: Vault,
    holder: Holder,
    /// Where the next page begins; `None` at the end.
    next: Option<Timestamp>,
    /// The newest arrival number that belongs into the answer.
    cursor: u64,
    /// In order.
    echoes: Vec<Timestamp>,
    merkle: String,
}

impl Answer {
    /// One page alone has a length; more are streamed.
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
                let is_sent = sender.send(page.or(Err(Broken))).await.is_ok();
                if is_last || !is_sent {
                    return;
                }
                page = self.page().await.inspect_err(|error| {
                    tracing::error!(%error, "an answer broke off");
                });
            }
        });
        (headers, stream::body(receiver)).into_response()
    }

    /// The next messages, and after the last of them the trie.
    async fn page(&mut self) -> Result<Bytes, Fault> {
        let mut room = page_room(&self.gate, self.holder).await?;
        let messages = match self.next {
            Some(start) => {
                self.vault.since(start, self.cursor, PAGE_COUNT_MAX, PAGE_BYTES_MAX).await?
            }
            None => Vec::new(),
        };
        room.cover_page(page_bytes(&messages)).await?;
        self.encode(&messages, PAGE_COUNT_MAX, room)
    }

    /// A page of at most `count_max` messages, without echoes, that has its room until it is sent.
    fn encode(
        &mut self,
        messages: &[Message],
        count_max: usize,
        room: Room,
    ) -> Result<Bytes, Fault> {
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let is_full = messages.len() >= count_max || bytes >= PAGE_BYTES_MAX;
        let last = messages.last().map(|message| message.timestamp);
        self.next = last.filter(|_| is_full).and_then(since::following);
        let mut page = BytesMut::with_capacity(bytes + 64 * messages.len() + self.merkle.len() + 8);
        let mut count = 0;
        for message in messages {
            if self.echoes.binary_search(&message.timestamp).is_err() {
                let (is_encrypted, content) =
                    content::unpack(&message.content).map_err(Fault::internal)?;
                put_message(&mut page, message.timestamp, is_encrypted, &content);
                count += 1;
            }
        }
        if self.next.is_none() {
            put_merkle(&mut page, &self.merkle);
        }
        self.gate.services.sent(count);
        Ok(room.keep(page))
    }
}

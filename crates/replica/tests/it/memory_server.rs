//! A server in memory.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use crdt::{Fingerprint, Message};
use protocol::{
    Claim, ClientRequest, ClientResponse, ErrorCode, Finding, Item, Part, PullResponse,
    PushRequest, PushResponse, ReconcileRequest, ReconcileResponse,
};
use replica::{Error, PageStream, Pull, Result, Transport};

/// What the real server promises, in a page: arrival order, first content wins, all or nothing.
#[derive(Default)]
pub(crate) struct MemoryServer {
    pub(crate) messages: Vec<Message>,
    pub(crate) clients: u64,
    pub(crate) now_ms: Cell<u64>,
    pub(crate) requests: u64,
    /// Messages that a request or an answer may carry; 0 is no limit.
    pub(crate) messages_count_max: usize,
    /// The answer to this request (counted from 1) is lost on the way.
    pub(crate) lose_answer: Option<u64>,
}

impl MemoryServer {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut total = Fingerprint::default();
        for message in &self.messages {
            total += Fingerprint::of(message.timestamp, &message.content);
        }
        total
    }

    /// `all` is the fingerprint of the whole set.
    fn page(&mut self, cursor: u64, limit: usize, all: Fingerprint) -> Result<PullResponse> {
        self.check_count(limit)?;
        let start = usize::try_from(cursor).unwrap().min(self.messages.len());
        let end = (start + limit).min(self.messages.len());
        let answer = PullResponse {
            messages: self.messages[start..end].iter().cloned().map(Into::into).collect(),
            cursor: end as u64,
            more: end < self.messages.len(),
            fingerprint: Some(all.into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if self.messages_count_max == 0 || count <= self.messages_count_max {
            return Ok(());
        }
        Err(Error::Refused { code: ErrorCode::TooLarge, message: "too many messages".into() })
    }

    fn answer<T>(&mut self, answer: T) -> Result<T> {
        self.requests += 1;
        if self.lose_answer == Some(self.requests) {
            return Err(Error::Unreachable("the answer was lost".into()));
        }
        Ok(answer)
    }
}

impl Transport for MemoryServer {
    fn register(&mut self, _: Option<&str>, _: &ClientRequest) -> Result<ClientResponse> {
        self.clients += 1;
        let client_id = format!("{:016x}", self.clients);
        self.answer(ClientResponse { client_id, token: format!("token {}", self.clients) })
    }

    fn pull(&mut self, _: &str, pull: &Pull) -> Result<PullResponse> {
        self.page(pull.cursor, pull.limit, self.fingerprint())
    }

    fn stream(&mut self, _: &str, cursor: u64) -> Result<PageStream> {
        let limit = if self.messages_count_max == 0 { 5 } else { self.messages_count_max };
        let (mut pages, mut cursor) = (Vec::new(), cursor);
        let all = self.fingerprint();
        loop {
            let page = self.page(cursor, limit, all);
            cursor = page.as_ref().map_or(cursor, |page| page.cursor);
            let more = page.as_ref().is_ok_and(|page| page.more);
            pages.push(page);
            if !more {
                return Ok(Box::new(pages.into_iter()));
            }
        }
    }

    fn push(&mut self, _: &str, request: &PushRequest, _: u64) -> Result<PushResponse> {
        self.check_count(request.messages.len())?;
        let known: BTreeMap<_, _> =
            self.messages.iter().map(|m| (m.timestamp, m.content.clone())).collect();
        let mut new = Vec::new();
        let count = request.messages.len();
        for message in &request.messages {
            let message = Message::try_from(message.clone()).unwrap();
            match known.get(&message.timestamp) {
                Some(content) if *content != message.content => {
                    let code = ErrorCode::TimestampConflict;
                    return Err(Error::Refused { code, message: String::new() });
                }
                Some(_) => {}
                None => new.push(message),
            }
        }
        let stored = new.len() as u64;
        self.messages.extend(new);
        let answer = PushResponse {
            stored,
            known: count as u64 - stored,
            cursor: self.messages.len() as u64,
            fingerprint: Some(self.fingerprint().into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }

    fn reconcile(&mut self, _: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        let (mut end, mut findings) = (0, Vec::new());
        for claim in &request.claims {
            let start = end + claim.gap;
            end = start + claim.length;
            findings.push(self.find(claim, &(start..end)));
        }
        let answer = ReconcileResponse {
            findings,
            cursor: self.messages.len() as u64,
            fingerprint: Some(self.fingerprint().into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }
}

impl MemoryServer {
    fn within(&self, moments: &Range<u64>) -> Vec<(&Message, u64)> {
        let mut all: Vec<_> = self
            .messages
            .iter()
            .filter(|message| moments.contains(&message.timestamp.moment()))
            .map(|message| (message, Item::of(message.timestamp, &message.content).id))
            .collect();
        all.sort_by_key(|(message, _)| message.timestamp);
        all
    }

    /// A range whose sums differ is one part; a claim of ids is answered at once.
    fn find(&self, claim: &Claim, moments: &Range<u64>) -> Finding {
        let here = self.within(moments);
        let digest = here.iter().fold(0u64, |sum, (_, id)| sum.wrapping_add(*id));
        let count = here.len() as u64;
        if claim.ids.is_empty() && claim.count > 0 {
            let equal = (count, digest) == (claim.count, claim.digest);
            let part = Part { length: claim.length, count, digest };
            let parts = if equal || count == 0 { vec![] } else { vec![part] };
            return Finding { equal, parts, ..Finding::default() };
        }
        let missing = here.iter().filter(|(_, id)| !claim.ids.contains(id));
        let is_wanted = |id: &u64| !here.iter().any(|(_, known)| known == id);
        Finding {
            messages: missing.map(|(message, _)| (*message).clone().into()).collect(),
            wanted: claim.ids.iter().copied().filter(is_wanted).collect(),
            ..Finding::default()
        }
    }
}

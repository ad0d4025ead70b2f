//! Server in memory for tests of replicas.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crdt::{EncryptionMode, Fingerprint, Message, Timestamp};
use protocol::{
    DRIFT_MS_MAX, EnableE2eeRequest, ErrorCode, PullResponse, PushRequest, PushResponse,
    ReconcileEntry, ReconcileRequest, ReconcileResponse, RegisterDeviceRequest,
    RegisterDeviceResponse, WireRangeBucket, WireRangeClaim, WireRangeDiff,
};
use replica::{Error, PageStream, PullParams, Result, Transport};

/// Id of the next e2ee set; two sets of one account have different ids.
static SETS_COUNT: AtomicU64 = AtomicU64::new(1 << 32);

/// Server in memory that keeps the promises of the real one: sequence order, the first content of a
/// timestamp wins, all or nothing.
#[derive(Default)]
pub(crate) struct MemoryServer {
    /// Messages of the account, or of the e2ee set once the account is end-to-end encrypted.
    pub(crate) messages: Vec<Message>,
    pub(crate) form: Option<EncryptionMode>,
    /// Messages from before the account became end-to-end encrypted; the tokens in `in_sealed` no
    /// longer read them.
    pub(crate) plain: Option<Vec<Message>>,
    /// Number of the server; the plain sets of servers with different numbers differ.
    pub(crate) number: u64,
    pub(crate) in_sealed: BTreeSet<String>,
    /// Id of the e2ee set, once the account is end-to-end encrypted.
    pub(crate) sealed_id: u64,
    pub(crate) clients: u64,
    pub(crate) now_ms: Cell<u64>,
    pub(crate) requests: u64,
    /// Maximum number of messages in a request or an answer; 0 means no limit.
    pub(crate) messages_count_max: usize,
    /// Timestamps that the server refuses from every device, besides zero.
    pub(crate) invalid: Vec<Timestamp>,
    /// Loss that the server reports until a device pushes.
    pub(crate) loss: Option<protocol::ServerLoss>,
    /// Number of the request (counted from 1) whose answer is lost on the way.
    pub(crate) lose_answer: Option<u64>,
    /// Closure that runs while the next answer is on its way.
    pub(crate) meanwhile: Option<Box<dyn FnOnce()>>,
}

impl MemoryServer {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.messages)
    }

    /// Returns the id of the account's first set, whatever its encryption mode is.
    fn plain_id(&self) -> u64 {
        1 + self.number
    }

    fn is_in_plain(&self, token: &str) -> bool {
        self.plain.is_some() && !self.in_sealed.contains(token)
    }

    /// Returns the messages of a device, the id of their set, and their fingerprint.
    fn set(&self, token: &str) -> (&[Message], u64, Fingerprint) {
        match &self.plain {
            Some(plain) if self.is_in_plain(token) => (plain, self.plain_id(), fingerprint(plain)),
            Some(_) => (&self.messages, self.sealed_id, self.fingerprint()),
            None => (&self.messages, self.plain_id(), self.fingerprint()),
        }
    }

    fn page(&mut self, token: &str, cursor: u64, limit: usize) -> Result<PullResponse> {
        self.check_count(limit)?;
        let (messages, set_id, all) = self.set(token);
        let start = usize::try_from(cursor).unwrap().min(messages.len());
        let end = (start + limit).min(messages.len());
        let answer = PullResponse {
            messages: messages[start..end].iter().cloned().map(Into::into).collect(),
            cursor: end as u64,
            more: end < messages.len(),
            fingerprint: Some(all.into()),
            server_time_ms: self.now_ms.get(),
            encryption: self.form.map(Into::into),
            set_id,
            in_plain: self.is_in_plain(token),
            loss: self.loss.clone(),
        };
        self.answer(answer)
    }

    /// Checks the clock drift as `docs/reference/formats/1-timestamp.md` specifies it.
    fn check_drift(&self, request: &PushRequest) -> Result<()> {
        let sent = request.messages.iter().cloned().map(|m| Message::try_from(m).unwrap());
        let latest_ms = sent.map(|message| message.timestamp.millis()).max().unwrap_or(0);
        let newest = self.messages.iter().map(|message| message.timestamp.millis()).max();
        let follows = newest.map_or(0, |newest| newest + request.messages.len() as u64);
        if latest_ms <= follows.max(self.now_ms.get() + DRIFT_MS_MAX) {
            Ok(())
        } else {
            refused(ErrorCode::ClockDrift)
        }
    }

    fn check_timestamps(&self, request: &PushRequest) -> Result<()> {
        let is_invalid = |message: &protocol::WireMessage| match Message::try_from(message.clone())
        {
            Ok(Message { timestamp, .. }) => {
                timestamp == Timestamp::ZERO || self.invalid.contains(&timestamp)
            }
            Err(_) => true,
        };
        if request.messages.iter().any(is_invalid) {
            return refused(ErrorCode::InvalidTimestamp);
        }
        Ok(())
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if self.messages_count_max == 0 || count <= self.messages_count_max {
            return Ok(());
        }
        Err(Error::RejectedByServer {
            code: ErrorCode::TooLarge,
            message: "too many messages".into(),
        })
    }

    fn answer<T>(&mut self, answer: T) -> Result<T> {
        self.requests += 1;
        if let Some(happens) = self.meanwhile.take() {
            happens();
        }
        if self.lose_answer == Some(self.requests) {
            return Err(Error::Unreachable("the answer was lost".into()));
        }
        Ok(answer)
    }
}

fn fingerprint(messages: &[Message]) -> Fingerprint {
    let mut total = Fingerprint::default();
    for message in messages {
        total += Fingerprint::from_message(message.timestamp, &message.content);
    }
    total
}

fn refused<T>(code: ErrorCode) -> Result<T> {
    Err(Error::RejectedByServer { code, message: String::new() })
}

impl Transport for MemoryServer {
    fn register(
        &mut self,
        _: Option<&str>,
        _: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.clients += 1;
        let (device_id, token) =
            (format!("{:016x}", self.clients), format!("token {}", self.clients));
        if self.plain.is_some() {
            self.in_sealed.insert(token.clone());
        }
        self.answer(RegisterDeviceResponse {
            device_id,
            token,
            encryption: self.form.map(Into::into),
        })
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.page(token, pull.cursor, pull.limit)
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        let limit = if self.messages_count_max == 0 { 5 } else { self.messages_count_max };
        let (mut pages, mut cursor) = (Vec::new(), cursor);
        loop {
            let page = self.page(token, cursor, limit);
            cursor = page.as_ref().map_or(cursor, |page| page.cursor);
            let more = page.as_ref().is_ok_and(|page| page.more);
            pages.push(page);
            if !more {
                return Ok(Box::new(pages.into_iter()));
            }
        }
    }

    fn push(&mut self, token: &str, request: &PushRequest, _: u64) -> Result<PushResponse> {
        self.check_count(request.messages.len())?;
        let form = EncryptionMode::from_bytes(&request.key_id).unwrap();
        if *self.form.get_or_insert(form) != form || self.is_in_plain(token) {
            return refused(ErrorCode::EncryptionMismatch);
        }
        let key = match form {
            EncryptionMode::Plain => None,
            EncryptionMode::EndToEnd(id) => Some(id),
        };
        if request.messages.iter().any(|one| crdt::sealing_key_id(&one.content) != key) {
            return refused(ErrorCode::EncryptionMismatch);
        }
        let set_id = self.set(token).1;
        let is_behind = |after| self.messages.len() as u64 > after || request.set_id != set_id;
        if request.expected_cursor.is_some_and(is_behind) {
            return refused(ErrorCode::StaleCursor);
        }
        self.check_timestamps(request)?;
        self.check_drift(request)?;
        let known: BTreeMap<_, _> =
            self.messages.iter().map(|m| (m.timestamp, m.content.clone())).collect();
        let mut new = Vec::new();
        let count = request.messages.len();
        for message in &request.messages {
            let message = Message::try_from(message.clone()).unwrap();
            match known.get(&message.timestamp) {
                Some(content) if *content != message.content => {
                    return refused(ErrorCode::TimestampConflict);
                }
                Some(_) => {}
                None => new.push(message),
            }
        }
        let stored = new.len() as u64;
        if stored > 0 {
            self.loss = None;
        }
        self.messages.extend(new);
        let answer = PushResponse {
            stored_count: stored,
            known_count: count as u64 - stored,
            cursor: self.messages.len() as u64,
            fingerprint: Some(self.fingerprint().into()),
            server_time_ms: self.now_ms.get(),
            set_id,
        };
        self.answer(answer)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.turn(token, request)
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        let (messages, set_id, all) = self.set(token);
        let (mut end, mut findings) = (0, Vec::new());
        for claim in &request.claims {
            let start = end + claim.gap;
            end = start + claim.length;
            findings.push(find(messages, claim, &(start..end)));
        }
        let answer = ReconcileResponse {
            diffs: findings,
            cursor: messages.len() as u64,
            fingerprint: Some(all.into()),
            server_time_ms: self.now_ms.get(),
            set_id,
        };
        self.answer(answer)
    }
}

impl MemoryServer {
    /// Makes the account end-to-end encrypted, or lets a device follow.
    fn turn(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        let wanted = EncryptionMode::from_bytes(&request.key_id).unwrap();
        let is_sealed = self.form == Some(wanted);
        if !is_sealed && (!request.start || matches!(self.form, Some(EncryptionMode::EndToEnd(_))))
        {
            return refused(ErrorCode::EncryptionMismatch);
        }
        if is_sealed && !self.is_in_plain(token) {
            return self.answer(());
        }
        let holds = request.holds.as_ref().map(|holds| holds.to_crdt().unwrap());
        if (!is_sealed || holds.is_some()) && holds != Some(self.set(token).2) {
            return refused(ErrorCode::StaleCursor);
        }
        if self.form == Some(EncryptionMode::Plain) {
            self.plain = Some(std::mem::take(&mut self.messages));
            self.sealed_id = SETS_COUNT.fetch_add(1, Ordering::Relaxed);
        }
        self.form = Some(wanted);
        self.in_sealed.insert(token.to_owned());
        self.answer(())
    }
}

fn within<'a>(messages: &'a [Message], moments: &Range<u64>) -> Vec<(&'a Message, u64)> {
    let mut all: Vec<_> = messages
        .iter()
        .filter(|message| moments.contains(&message.timestamp.hybrid_time()))
        .map(|message| {
            (message, ReconcileEntry::from_message(message.timestamp, &message.content).id)
        })
        .collect();
    all.sort_by_key(|(message, _)| message.timestamp);
    all
}

/// Compares a range: if its fingerprint differs, it is one bucket; a claim of ids is answered at
/// once.
fn find(messages: &[Message], claim: &WireRangeClaim, moments: &Range<u64>) -> WireRangeDiff {
    let here = within(messages, moments);
    let digest = here.iter().fold(0u64, |sum, (_, id)| sum.wrapping_add(*id));
    let count = here.len() as u64;
    if claim.ids.is_empty() && claim.count > 0 {
        let equal = (count, digest) == (claim.count, claim.digest);
        let part = WireRangeBucket { length: claim.length, count, digest };
        let parts = if equal || count == 0 { vec![] } else { vec![part] };
        return WireRangeDiff { equal, buckets: parts, ..WireRangeDiff::default() };
    }
    let missing = here.iter().filter(|(_, id)| !claim.ids.contains(id));
    let is_wanted = |id: &u64| !here.iter().any(|(_, known)| known == id);
    WireRangeDiff {
        messages: missing.map(|(message, _)| (*message).clone().into()).collect(),
        wanted: claim.ids.iter().copied().filter(is_wanted).collect(),
        ..WireRangeDiff::default()
    }
}

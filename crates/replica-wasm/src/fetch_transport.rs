//! Implements the transport over the browser's `fetch`: protobuf, a timeout for every wait.
//!
//! # Invariants
//! - During a network request, the connection belongs to the page: the lock is released before each
//!   request and acquired again before its answer is processed.

use async_trait::async_trait;
use bytes::Bytes;
use js_sys::{Array, Function, Promise, Uint8Array};
use prost::Message;
use protocol::{
    EnableE2eeRequest, PROTOBUF, PROTOBUF_SEQUENCE, PullResponse, PushRequest, PushResponse,
    ReconcileRequest, ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use replica::{
    ANSWER_BYTES_MAX, AsyncPageStream, AsyncTransport, Error, EventStreamDecoder,
    KEEPALIVE_TIMEOUT, PageDecoder, PullParams, Result, ServerEvent,
};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Headers, ReadableStreamReadResult, RequestInit, Response};

/// The timeout for one request and its answer, whatever the size of the page.
const REQUEST_TIMEOUT_MS: i32 = 120_000;
/// The timeout between two chunks of a stream.
const READ_TIMEOUT_MS: i32 = 60_000;
/// The maximum bytes of a chunk: as many as in a page of a stream.
const PIECE_BYTES_MAX: u32 = 256 << 10;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = fetch, catch)]
    async fn js_fetch(url: &str, init: &RequestInit) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &JsValue, ms: i32) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timeout: &JsValue);

    /// The browser's `ReadableStream`.
    type Stream;
    #[wasm_bindgen(method, catch, js_name = getReader)]
    fn reader(this: &Stream, options: &JsValue) -> Result<Reader, JsValue>;
    /// A reader that fills the memory that it is given, or one that allocates its own, if the
    /// browser cannot do the former with a response.
    type Reader;
    #[wasm_bindgen(method)]
    fn read(this: &Reader, memory: &Uint8Array) -> Promise;
    #[wasm_bindgen(method)]
    fn cancel(this: &Reader) -> Promise;

    /// The lock on the connection: `acquire` and `release` of the worker's mutex.
    #[derive(Clone)]
    pub type ConnectionLock;
    #[wasm_bindgen(method, catch)]
    async fn acquire(this: &ConnectionLock) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method)]
    fn release(this: &ConnectionLock);
}

/// A server reached with `fetch`.
#[derive(Clone)]
pub(crate) struct FetchTransport {
    server: String,
    signal: AbortSignal,
    turns: ConnectionLock,
}

impl FetchTransport {
    pub(crate) fn new(server: &str, signal: AbortSignal, turns: ConnectionLock) -> Self {
        Self { server: server.trim_end_matches('/').to_owned(), signal, turns }
    }

    /// Sends a `GET` request and decodes the answer as `T`.
    pub(crate) async fn get<T: Message + Default>(&self, path: &str, token: &str) -> Result<T> {
        self.call(path, Some(token), None).await
    }

    async fn post<T: Message + Default>(
        &self,
        path: &str,
        token: Option<&str>,
        body: &impl Message,
    ) -> Result<T> {
        self.call(path, token, Some(&body.encode_to_vec())).await
    }

    async fn call<T: Message + Default>(
        &self,
        path: &str,
        token: Option<&str>,
        body: Option<&[u8]>,
    ) -> Result<T> {
        self.turns.release();
        let answer = self.bytes(path, token, body).await;
        self.acquire_connection().await?;
        // Messages are slices of these bytes, not copies.
        T::decode(Bytes::from(answer?))
            .map_err(|source| Error::Unreachable(format!("invalid response: {source}")))
    }

    async fn acquire_connection(&self) -> Result<()> {
        self.turns.acquire().await.map(drop).map_err(|error| unreachable(&error))
    }

    async fn bytes(&self, path: &str, token: Option<&str>, body: Option<&[u8]>) -> Result<Vec<u8>> {
        let timeout = AbortSignal::timeout_with_u32(REQUEST_TIMEOUT_MS.unsigned_abs());
        let signal = AbortSignal::any(&Array::of2(&self.signal, &timeout));
        read(&self.send(path, token, body, (PROTOBUF, &signal)).await?).await
    }

    /// Returns a response that is not a refusal; its body has not been read yet.
    async fn send(
        &self,
        path: &str,
        token: Option<&str>,
        body: Option<&[u8]>,
        (accept, signal): (&str, &AbortSignal),
    ) -> Result<Response> {
        let init = request(token, body, accept).map_err(|error| unreachable(&error))?;
        init.set_signal(Some(signal));
        let response = js_fetch(&format!("{}{path}", self.server), &init).await;
        let response: Response = response.map_err(|error| unreachable(&error))?.unchecked_into();
        let status = response.status();
        if !response.ok() {
            return Err(Error::from_response(status, &read(&response).await?));
        }
        let media_type = response.headers().get("content-type").ok().flatten();
        Error::check_media_type(status, media_type.as_deref())?;
        Ok(response)
    }

    /// Subscribes to `GET /v1/sync/events` until the stream ends, and calls `on_state` for each new
    /// state. The connection's lock is not needed for that.
    pub(crate) async fn listen(&self, token: &str, on_state: &Function) -> Result<()> {
        let (path, accept) = ("/v1/sync/events", (PROTOBUF, &self.signal));
        let response = self.send(path, Some(token), None, accept).await?;
        let quiet_ms = i32::try_from(KEEPALIVE_TIMEOUT.as_millis()).expect("less than a minute");
        let mut pieces = BodyChunks::from_response(&response, quiet_ms)?;
        let mut ear = EventStreamDecoder::default();
        while let Some(piece) = pieces.next().await? {
            ear.push(&piece)?;
            while let Some(heard) = ear.next_event() {
                if matches!(heard, ServerEvent::State(_)) {
                    on_state.call0(&JsValue::NULL).map_err(|error| unreachable(&error))?;
                }
            }
        }
        Ok(())
    }
}

fn request(
    token: Option<&str>,
    body: Option<&[u8]>,
    accept: &str,
) -> std::result::Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    headers.set("accept", accept)?;
    if let Some(token) = token {
        headers.set("authorization", &format!("Bearer {token}"))?;
    }
    let init = RequestInit::new();
    if let Some(body) = body {
        headers.set("content-type", PROTOBUF)?;
        init.set_method("POST");
        init.set_body(&Uint8Array::from(body));
    }
    init.set_headers(&headers);
    Ok(init)
}

/// Reads the whole body, up to the maximum size of Warren's answers.
async fn read(response: &Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if response.body().is_none() {
        return Ok(body);
    }
    let mut pieces = BodyChunks::from_response(response, REQUEST_TIMEOUT_MS)?;
    while let Some(piece) = pieces.next().await? {
        body.extend(piece);
        if body.len() as u64 > ANSWER_BYTES_MAX {
            return Err(Error::Unreachable("response too large".into()));
        }
    }
    Ok(body)
}

fn unreachable(error: &JsValue) -> Error {
    let message = error.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
    Error::Unreachable(message.unwrap_or_else(|| format!("{error:?}")))
}

/// A reader of a body in chunks.
struct BodyChunks {
    reader: Reader,
    /// The memory for the next chunk. Chunks with memory of their own would wait for the garbage
    /// collector, which lets them grow to a hundred megabytes.
    memory: Uint8Array,
    timeout_ms: i32,
}

impl BodyChunks {
    fn from_response(response: &Response, timeout_ms: i32) -> Result<Self> {
        let body =
            response.body().ok_or_else(|| Error::Unreachable("response without a body".into()))?;
        let stream: Stream = body.unchecked_into();
        let options = js_sys::Object::new();
        let is_set = js_sys::Reflect::set(&options, &"mode".into(), &"byob".into());
        is_set.map_err(|error| unreachable(&error))?;
        let reader = stream.reader(&options).or_else(|_| stream.reader(&JsValue::UNDEFINED));
        let reader = reader.map_err(|error| unreachable(&error))?;
        Ok(Self { reader, memory: Uint8Array::new_with_length(PIECE_BYTES_MAX), timeout_ms })
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let read = with_timeout(self.timeout_ms, &self.reader.read(&self.memory)).await;
        let read: ReadableStreamReadResult =
            read.map_err(|error| unreachable(&error))?.unchecked_into();
        if read.get_done().unwrap_or(false) {
            return Ok(None);
        }
        let piece: Uint8Array = read.get_value().unchecked_into();
        self.memory = Uint8Array::new(&piece.buffer());
        Ok(Some(piece.to_vec()))
    }
}

impl Drop for BodyChunks {
    fn drop(&mut self) {
        // Cancelling closes the connection, and its result is not awaited. A stream that failed
        // rejects the promise, and an unhandled rejection must be avoided.
        drop(JsFuture::from(self.reader.cancel()));
    }
}

/// Returns the promise's result, or an error after the timeout.
async fn with_timeout(ms: i32, promise: &Promise) -> std::result::Result<JsValue, JsValue> {
    let mut timeout = JsValue::NULL;
    let too_late = Promise::new(&mut |_, reject| {
        let error = js_sys::Error::new("no data received for too long");
        timeout = set_timeout(&reject.bind1(&JsValue::NULL, &error).into(), ms);
    });
    let first = JsFuture::from(Promise::race(&Array::of2(promise, &too_late))).await;
    clear_timeout(&timeout);
    first
}

#[async_trait(?Send)]
impl AsyncTransport for FetchTransport {
    async fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.post("/v1/devices", token, request).await
    }

    async fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.get(&pull.path(), token).await
    }

    async fn stream(&mut self, token: &str, cursor: u64) -> Result<Box<dyn AsyncPageStream>> {
        self.turns.release();
        let path = format!("/v1/sync/full?cursor={cursor}");
        let response = self.send(&path, Some(token), None, (PROTOBUF_SEQUENCE, &self.signal)).await;
        self.acquire_connection().await?;
        let pieces = BodyChunks::from_response(&response?, READ_TIMEOUT_MS)?;
        let (decoder, fetch) = (PageDecoder::default(), self.clone());
        Ok(Box::new(FetchPageStream { pieces, decoder, fetch }))
    }

    async fn push(
        &mut self,
        token: &str,
        request: &PushRequest,
        unsent: u64,
    ) -> Result<PushResponse> {
        self.post(&format!("/v1/sync/delta?unsent_count={unsent}"), Some(token), request).await
    }

    async fn reconcile(
        &mut self,
        token: &str,
        request: &ReconcileRequest,
    ) -> Result<ReconcileResponse> {
        self.post("/v1/sync/reconcile", Some(token), request).await
    }

    async fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.post("/v1/sync/e2ee", Some(token), request).await
    }
}

/// The pages of `GET /v1/sync/full`.
struct FetchPageStream {
    pieces: BodyChunks,
    decoder: PageDecoder,
    fetch: FetchTransport,
}

#[async_trait(?Send)]
impl AsyncPageStream for FetchPageStream {
    async fn next(&mut self) -> Result<Option<PullResponse>> {
        loop {
            if let Some(page) = self.decoder.page()? {
                return Ok(Some(page));
            }
            self.fetch.turns.release();
            let piece = self.pieces.next().await;
            self.fetch.acquire_connection().await?;
            match piece? {
                Some(piece) => self.decoder.push(&piece),
                None => return self.decoder.end().map(|()| None),
            }
        }
    }
}

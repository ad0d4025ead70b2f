//! What handlers take from a request: who asks, in which encoding, with which body.
//!
//! # Invariants
//! - A body is read within the limit on its size and the limit on its time, whatever its head
//!   promised.
//! - A token is checked against the accounts at every request: revoking takes effect at once.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use accounts::{Session, Token};
use axum::body::{Body as HttpBody, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use protocol::ErrorCode;
use serde::de::DeserializeOwned;
use sync_store::{Seen, Vault};
use tokio::sync::OwnedSemaphorePermit;
use zeroize::Zeroizing;

use crate::app::{App, blocking};
use crate::error::Refusal;

/// Bytes of a body that carries no messages: the longest login, password and name take two
/// thousand.
const FORM_BYTES_MAX: usize = 64 << 10;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// What the answer should be in: JSON unless protobuf is asked for, as a message or as a
    /// sequence.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let mut ranges = text(headers, &ACCEPT).split(',').map(essence);
        let is_protobuf =
            |range: &str| [protocol::PROTOBUF, protocol::PROTOBUF_SEQUENCE].contains(&range);
        if ranges.any(is_protobuf) { Self::Protobuf } else { Self::Json }
    }

    fn sent(headers: &HeaderMap) -> Result<Self, Refusal> {
        match essence(text(headers, &CONTENT_TYPE)) {
            protocol::JSON => Ok(Self::Json),
            protocol::PROTOBUF => Ok(Self::Protobuf),
            _ => Err(Refusal::of(ErrorCode::UnsupportedMediaType)),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Encoding {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(Self::accepted(&parts.headers))
    }
}

/// The other side of a connection; `accept` puts it beside each request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Whether its last request was refused and had a body, of which perhaps not all was read.
    pub(crate) is_refused: Arc<AtomicBool>,
}

/// `Authorization: Bearer …`, unchecked. `None` if there is none.
pub(crate) struct Bearer(Option<Zeroizing<String>>);

impl Bearer {
    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|text| text.as_str())
    }

    /// As a device's token.
    pub(crate) fn token(&self) -> Result<Token, Refusal> {
        Ok(Token::parse(self.text().unwrap_or_default())?)
    }
}

impl<S: Sync> FromRequestParts<S> for Bearer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let credentials = text(&parts.headers, &AUTHORIZATION).split_once(' ');
        let token = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        Ok(Self(token.map(|(_, token)| token.trim().to_owned().into())))
    }
}

/// The operator, who has shown their token.
pub(crate) struct Operator;

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        if app.config.admin_token.is_none() {
            return Err(Refusal::of(ErrorCode::AdminDisabled));
        }
        let bearer = Bearer::from_request_parts(parts, app).await?;
        // Who sends none does not guess.
        let token = bearer.text().ok_or(Refusal::of(ErrorCode::InvalidToken))?;
        let peer = parts.extensions.get::<Peer>().expect("accept puts it beside each request");
        if app.is_operator(token, peer.address)? {
            Ok(Self)
        } else {
            Err(Refusal::new(ErrorCode::InvalidToken, "this is not the operator's token"))
        }
    }
}

/// A device that has shown its token, and its vault, open.
pub(crate) struct Device {
    pub(crate) session: Session,
    pub(crate) vault: Vault,
}

impl Device {
    /// That it was here.
    pub(crate) fn seen(&self, now_ms: u64) -> Seen {
        Seen { client: self.session.client_id.clone(), now_ms, node: None, unsent: None }
    }
}

impl FromRequestParts<Arc<App>> for Device {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let token = Bearer::from_request_parts(parts, app).await?.token()?;
        let app = Arc::clone(app);
        blocking(move || {
            let session = app.accounts.authenticate(&token)?;
            let key = || Ok(app.accounts.unlock_by_token(&token)?.key);
            let vault = app.vaults.open_with::<Refusal>(&session.vault, key)?;
            Ok(Self { session, vault })
        })
        .await
    }
}

/// A body that carries messages, not yet decoded: that takes more than a moment.
pub(crate) struct RawBody {
    encoding: Encoding,
    bytes: Bytes,
    /// Its place among those that are read and decoded.
    _room: OwnedSemaphorePermit,
}

impl RawBody {
    /// Refuses a list that is too long before it is decoded: on the wire an item may take two
    /// bytes, in memory it takes at least 56.
    pub(crate) fn check_count(&self, count_max: usize, what: &str) -> Result<(), Refusal> {
        if self.encoding == Encoding::Json {
            // An item takes no less there than in memory.
            return Ok(());
        }
        check_count(count_items(&self.bytes)?, count_max, what)
    }

    pub(crate) fn decode<T: DeserializeOwned + prost::Message + Default>(
        self,
    ) -> Result<T, Refusal> {
        match self.encoding {
            // What serde and prost say is about the caller's own bytes.
            Encoding::Json => serde_json::from_slice(&self.bytes).map_err(|e| malformed(&e)),
            Encoding::Protobuf => T::decode(self.bytes).map_err(|e| malformed(&e)),
        }
    }

    async fn read(request: Request, app: &App, bytes_max: usize) -> Result<Self, Refusal> {
        let encoding = Encoding::sent(request.headers())?;
        let promised = request.body().size_hint().upper().and_then(|bytes| bytes.try_into().ok());
        let room =
            app.room(promised.map_or(bytes_max, |bytes: usize| bytes.min(bytes_max))).await?;
        let read = read(request.into_body(), bytes_max);
        let Ok(bytes) = tokio::time::timeout(app.config.request_timeout, read).await else {
            return Err(Refusal::of(ErrorCode::Timeout));
        };
        Ok(Self { encoding, bytes: bytes?, _room: room })
    }
}

impl FromRequest<Arc<App>> for RawBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        Self::read(request, app, app.config.body_bytes_max).await
    }
}

/// A small body, decoded.
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned + prost::Message + Default> FromRequest<Arc<App>> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        RawBody::read(request, app, FORM_BYTES_MAX).await?.decode().map(Self)
    }
}

/// A small body of a call that takes JSON alone.
pub(crate) struct JsonForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonForm<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let body = RawBody::read(request, app, FORM_BYTES_MAX).await?;
        match body.encoding {
            Encoding::Json => {
                serde_json::from_slice(&body.bytes).map(Self).map_err(|e| malformed(&e))
            }
            Encoding::Protobuf => {
                let message = "this call takes application/json alone";
                Err(Refusal::new(ErrorCode::UnsupportedMediaType, message))
            }
        }
    }
}

pub(crate) fn check_count(count: usize, count_max: usize, what: &str) -> Result<(), Refusal> {
    if count <= count_max {
        return Ok(());
    }
    let message = format!("a request has at most {count_max} {what} here");
    Err(Refusal::new(ErrorCode::TooLarge, message))
}

/// Counts the items of a protobuf message whose one field is a list.
fn count_items(mut body: &[u8]) -> Result<usize, Refusal> {
    let mut count = 0;
    while !body.is_empty() {
        let (tag, wire_type) = decode_key(&mut body).map_err(|e| malformed(&e))?;
        skip_field(wire_type, tag, &mut body, DecodeContext::default())
            .map_err(|e| malformed(&e))?;
        count += usize::from(tag == 1);
    }
    Ok(count)
}

pub(crate) fn malformed(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(ErrorCode::Malformed, error.to_string())
}

async fn read(mut body: HttpBody, bytes_max: usize) -> Result<Bytes, Refusal> {
    let too_large =
        || Refusal::new(ErrorCode::TooLarge, format!("a body has at most {bytes_max} bytes here"));
    let promised = body.size_hint().lower();
    if promised > bytes_max as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| malformed(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        if data.len() > bytes_max - bytes.len() {
            return Err(too_large());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.freeze())
}

/// A header's value; empty if it is missing or not text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

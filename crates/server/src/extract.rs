//! What handlers take from a request: who asks, in which encoding, with which body.
//!
//! # Invariants
//! - A body is read within its limits, and counts as its device's or else as its network's.
//! - A token is checked against the accounts at every request: revoking takes effect at once.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use accounts::{Session, Token};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName};
use bytes::Bytes;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use protocol::ErrorCode;
use serde::de::DeserializeOwned;
use sync_store::{Seen, Vault};
use zeroize::{Zeroize, Zeroizing};

use crate::admission::body::{BodyLimits, Incoming};
use crate::admission::memory::{Holder, Room};
use crate::admission::proxies::is_forwarded;
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
        if !matches!(text(headers, &CONTENT_ENCODING), "" | "identity") {
            let message = "the body of a request is not compressed";
            return Err(Refusal::new(ErrorCode::UnsupportedMediaType, message));
        }
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

/// Who asks; `accept` puts it beside each request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The other side of the connection, or the client of a trusted proxy.
    pub(crate) address: IpAddr,
    /// Whether the other side is such a proxy.
    pub(crate) is_proxy: bool,
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
        if parts.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
            let message = "a request has one Authorization header";
            return Err(Refusal::new(ErrorCode::Malformed, message));
        }
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
        if app.is_operator(token, peer(&parts.extensions).address).await? {
            Ok(Self)
        } else {
            Err(Refusal::new(ErrorCode::InvalidToken, "this is not the operator's token"))
        }
    }
}

/// Who may see how the server is: the operator, or where nobody has said who that is, whoever is on
/// this machine and asks without a proxy. A proxy on this machine asks from here, too, for anybody.
pub(crate) struct Observer;

impl FromRequestParts<Arc<App>> for Observer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let address = peer(&parts.extensions).address;
        let is_here = address.is_loopback() && !is_forwarded(&parts.headers);
        if app.config.admin_token.is_none() && is_here {
            return Ok(Self);
        }
        Operator::from_request_parts(parts, app).await.map(|Operator| Self)
    }
}

/// A device that has shown its token, and the vault with its messages, open.
pub(crate) struct Device {
    pub(crate) session: Session,
    pub(crate) vault: Vault,
    pub(crate) token: Token,
    /// On whose account its answers are held.
    pub(crate) holder: Holder,
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
        let (app, address) = (Arc::clone(app), peer(&parts.extensions).address);
        let device = blocking(move || {
            let session = app.accounts.authenticate(&token)?;
            app.logins.note(&session.login, address);
            let key = || Ok(app.accounts.unlock_by_token(&token)?.messages(&session.set).key);
            let vault = session.set.sealed.as_ref().unwrap_or(&session.vault);
            let vault = app.vaults.open_with::<Refusal>(vault, key)?;
            let holder = Holder::of_account(session.account, address);
            Ok(Self { session, vault, token, holder })
        });
        let device = device.await?;
        parts.extensions.insert(device.holder);
        Ok(device)
    }
}

/// A body that carries messages, not yet decoded: that takes more than a moment.
pub(crate) struct RawBody {
    encoding: Encoding,
    bytes: Bytes,
    room: Room,
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

    /// What it says, and the room that this takes.
    pub(crate) fn decode<T: DeserializeOwned + prost::Message + Default>(
        self,
    ) -> Result<(T, Room), Refusal> {
        let decoded = match self.encoding {
            // What serde and prost say is about the caller's own bytes.
            Encoding::Json => serde_json::from_slice(&self.bytes).map_err(|e| malformed(&e)),
            Encoding::Protobuf => T::decode(self.bytes).map_err(|e| malformed(&e)),
        };
        Ok((decoded?, self.room))
    }

    /// The same, of which a part is a password.
    pub(crate) fn decode_and_wipe<T: DeserializeOwned + prost::Message + Default>(
        self,
    ) -> Result<(T, Room), Refusal> {
        let Self { encoding, bytes, room } = self;
        Ok((decode_and_wipe(encoding, bytes, decode)?, room))
    }

    async fn read(request: Request, app: &App, limits: BodyLimits) -> Result<Self, Refusal> {
        let encoding = Encoding::sent(request.headers())?;
        let extensions = request.extensions();
        let holder = extensions.get().copied();
        let holder = holder.unwrap_or_else(|| Holder::stranger(peer(extensions).address));
        let mut room = app.room(holder);
        let bytes = Incoming::new(request.into_body(), limits).whole(&mut room).await?;
        Ok(Self { encoding, bytes, room })
    }

    /// A small one, whose time does not grow.
    async fn read_form(request: Request, app: &App) -> Result<Self, Refusal> {
        let wait_max = app.config.request_timeout;
        let limits = BodyLimits { bytes_max: FORM_BYTES_MAX, wait_max, is_long: false };
        Self::read(request, app, limits).await
    }

    fn decode_form<T>(
        self,
        decode: impl FnOnce(Encoding, &[u8]) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        decode_and_wipe(self.encoding, self.bytes, decode)
    }
}

/// What a body says, of which perhaps a part is a password: the body itself is wiped.
fn decode_and_wipe<T>(
    encoding: Encoding,
    bytes: Bytes,
    decode: impl FnOnce(Encoding, &[u8]) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let decoded = decode(encoding, &bytes);
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.zeroize();
    }
    decoded
}

/// What serde and prost say is about the caller's own bytes.
fn decode<T: DeserializeOwned + prost::Message + Default>(
    encoding: Encoding,
    bytes: &[u8],
) -> Result<T, Refusal> {
    match encoding {
        Encoding::Json => serde_json::from_slice(bytes).map_err(|e| malformed(&e)),
        Encoding::Protobuf => T::decode(bytes).map_err(|e| malformed(&e)),
    }
}

fn peer(extensions: &Extensions) -> &Peer {
    extensions.get().expect("accept puts it beside each request")
}

impl FromRequest<Arc<App>> for RawBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (bytes_max, wait_max) = (app.config.body_bytes_max, app.config.request_timeout);
        Self::read(request, app, BodyLimits { bytes_max, wait_max, is_long: true }).await
    }
}

/// A small body, decoded.
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned + prost::Message + Default> FromRequest<Arc<App>> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let body = RawBody::read_form(request, app).await?;
        body.decode_form(decode).map(Self)
    }
}

/// A small body of a call that takes JSON alone.
pub(crate) struct JsonForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonForm<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let body = RawBody::read_form(request, app).await?;
        let form = body.decode_form(|encoding, bytes| match encoding {
            Encoding::Json => serde_json::from_slice(bytes).map_err(|e| malformed(&e)),
            Encoding::Protobuf => {
                let message = "this call takes application/json alone";
                Err(Refusal::new(ErrorCode::UnsupportedMediaType, message))
            }
        });
        form.map(Self)
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

/// A header's value; empty if it is missing or not text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

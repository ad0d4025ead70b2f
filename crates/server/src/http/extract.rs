//! Extractors for handlers: the authenticated client, the encoding and the body of a request.
//!
//! # Invariants
//! - A body is read within its limits, and counts against its device or else against its network.
//! - A token is checked against the accounts at every request, so a revocation takes effect at
//!   once.

use std::sync::Arc;

use accounts::{DeviceSession, DeviceToken};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName};
use bytes::Bytes;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use protocol::ErrorCode;
use serde::de::DeserializeOwned;
use sync_store::{DeviceActivity, Vault};
use zeroize::{Zeroize, Zeroizing};

use super::peer::RequestPeer;
use crate::admission::body::{BodyLimits, IncomingBody};
use crate::admission::memory::{MemoryOwner, MemoryReservation};
use crate::admission::proxies::is_forwarded;
use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;

/// The maximum size of a body without messages: the longest login, password and name need two
/// thousand bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEncoding {
    Json,
    Protobuf,
}

impl BodyEncoding {
    /// Returns the encoding of the response: JSON unless protobuf is requested, as a message or as
    /// a sequence.
    pub(crate) fn from_accept(headers: &HeaderMap) -> Self {
        let mut ranges = text(headers, &ACCEPT).split(',').map(essence);
        let is_protobuf =
            |range: &str| [protocol::PROTOBUF, protocol::PROTOBUF_SEQUENCE].contains(&range);
        if ranges.any(is_protobuf) { Self::Protobuf } else { Self::Json }
    }

    fn from_content_type(headers: &HeaderMap) -> Result<Self, ApiError> {
        if !matches!(text(headers, &CONTENT_ENCODING), "" | "identity") {
            let message = "request bodies must not be compressed";
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
        }
        match essence(text(headers, &CONTENT_TYPE)) {
            protocol::JSON => Ok(Self::Json),
            protocol::PROTOBUF => Ok(Self::Protobuf),
            _ => Err(ApiError::from_code(ErrorCode::UnsupportedMediaType)),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for BodyEncoding {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self::from_accept(&parts.headers))
    }
}

/// The token of `Authorization: Bearer …`, unchecked. It is `None` if the header is missing.
pub(crate) struct BearerToken(Option<Zeroizing<String>>);

impl BearerToken {
    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|text| text.as_str())
    }

    /// Parses the text as a device token.
    pub(crate) fn token(&self) -> Result<DeviceToken, ApiError> {
        Ok(DeviceToken::parse(self.text().unwrap_or_default())?)
    }
}

impl<S: Sync> FromRequestParts<S> for BearerToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        if parts.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
            let message = "a request can have only one Authorization header";
            return Err(ApiError::new(ErrorCode::Malformed, message));
        }
        let credentials = text(&parts.headers, &AUTHORIZATION).split_once(' ');
        let token = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        Ok(Self(token.map(|(_, token)| token.trim().to_owned().into())))
    }
}

/// Proof that the request has the admin token.
pub(crate) struct OperatorAuth;

impl FromRequestParts<Arc<AppState>> for OperatorAuth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, ApiError> {
        if app.config.admin_token.is_none() {
            return Err(ApiError::from_code(ErrorCode::AdminDisabled));
        }
        let bearer = BearerToken::from_request_parts(parts, app).await?;
        // A missing token is not counted as a login attempt.
        let token = bearer.text().ok_or(ApiError::from_code(ErrorCode::InvalidToken))?;
        if app.is_operator(token, peer(&parts.extensions).address).await? {
            Ok(Self)
        } else {
            Err(ApiError::new(ErrorCode::InvalidToken, "wrong admin token"))
        }
    }
}

/// Proof that the client may see the server's state: it is the operator, or, if the server has no
/// admin token, a client on this machine without a proxy. A proxy on this machine also connects
/// from here, on behalf of anyone.
pub(crate) struct ObserverAuth;

impl FromRequestParts<Arc<AppState>> for ObserverAuth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, ApiError> {
        let address = peer(&parts.extensions).address;
        let is_here = address.is_loopback() && !is_forwarded(&parts.headers);
        if app.config.admin_token.is_none() && is_here {
            return Ok(Self);
        }
        OperatorAuth::from_request_parts(parts, app).await.map(|OperatorAuth| Self)
    }
}

/// A device that is authenticated by its token, and the opened vault with its messages.
pub(crate) struct AuthenticatedDevice {
    pub(crate) session: DeviceSession,
    pub(crate) vault: Vault,
    pub(crate) token: DeviceToken,
    /// The owner of the memory for the device's requests and responses.
    pub(crate) holder: MemoryOwner,
}

impl AuthenticatedDevice {
    /// Returns the activity to record for this request.
    pub(crate) fn activity(&self, now_ms: u64) -> DeviceActivity {
        DeviceActivity {
            device: self.session.device_id.clone(),
            now_ms,
            node_id: None,
            unsent_count: None,
        }
    }
}

impl FromRequestParts<Arc<AppState>> for AuthenticatedDevice {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, ApiError> {
        let token = BearerToken::from_request_parts(parts, app).await?.token()?;
        let (app, address) = (Arc::clone(app), peer(&parts.extensions).address);
        let device = blocking(move || {
            let session = app.accounts.authenticate(&token)?;
            app.logins.record_use(&session.login, address);
            let key = || {
                Ok(app.accounts.unlock_by_token(&token)?.message_vault(&session.message_set).key)
            };
            let vault = session.message_set.e2ee_vault.as_ref().unwrap_or(&session.vault);
            let vault = app.vaults.open_with::<ApiError>(vault, key)?;
            let holder = MemoryOwner::for_account(session.account, address);
            Ok(Self { session, vault, token, holder })
        });
        let device = device.await?;
        parts.extensions.insert(device.holder);
        Ok(device)
    }
}

/// A body with messages. It is not decoded yet, because decoding takes more than a moment.
pub(crate) struct RawBody {
    encoding: BodyEncoding,
    bytes: Bytes,
    reservation: MemoryReservation,
}

impl RawBody {
    /// Refuses a list that is too long before it is decoded: an item may have two bytes in
    /// protobuf, but needs at least 56 in memory.
    pub(crate) fn check_count(&self, count_max: usize, what: &str) -> Result<(), ApiError> {
        if self.encoding == BodyEncoding::Json {
            // In JSON, an item is at least as large as in memory.
            return Ok(());
        }
        check_count(count_items(&self.bytes)?, count_max, what)
    }

    /// Decodes the body. Returns the value with the reservation for its memory.
    pub(crate) fn decode<T: DeserializeOwned + prost::Message + Default>(
        self,
    ) -> Result<(T, MemoryReservation), ApiError> {
        let decoded = match self.encoding {
            // Texts of serde and prost describe only the caller's own bytes.
            BodyEncoding::Json => serde_json::from_slice(&self.bytes).map_err(|e| malformed(&e)),
            BodyEncoding::Protobuf => T::decode(self.bytes).map_err(|e| malformed(&e)),
        };
        Ok((decoded?, self.reservation))
    }

    /// Decodes a body like [`Self::decode`] and wipes its bytes, because it contains a password.
    pub(crate) fn decode_and_wipe<T: DeserializeOwned + prost::Message + Default>(
        self,
    ) -> Result<(T, MemoryReservation), ApiError> {
        let Self { encoding, bytes, reservation } = self;
        Ok((decode_and_wipe(encoding, bytes, decode)?, reservation))
    }

    async fn read(request: Request, app: &AppState, limits: BodyLimits) -> Result<Self, ApiError> {
        let encoding = BodyEncoding::from_content_type(request.headers())?;
        let extensions = request.extensions();
        let holder = extensions.get().copied();
        let holder = holder.unwrap_or_else(|| MemoryOwner::anonymous(peer(extensions).address));
        let mut reservation = app.memory_reservation(holder);
        let bytes = IncomingBody::new(request.into_body(), limits).whole(&mut reservation).await?;
        Ok(Self { encoding, bytes, reservation })
    }

    /// Reads a small body, for which the time limit does not grow.
    async fn read_form(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let wait_max = app.config.request_timeout;
        let limits = BodyLimits { bytes_max: FORM_BYTES_MAX, wait_max, is_long: false };
        Self::read(request, app, limits).await
    }

    fn decode_form<T>(
        self,
        decode: impl FnOnce(BodyEncoding, &[u8]) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        decode_and_wipe(self.encoding, self.bytes, decode)
    }
}

/// Decodes a body and wipes its bytes, because it may contain a password.
fn decode_and_wipe<T>(
    encoding: BodyEncoding,
    bytes: Bytes,
    decode: impl FnOnce(BodyEncoding, &[u8]) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let decoded = decode(encoding, &bytes);
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.zeroize();
    }
    decoded
}

/// Decodes a small body. The texts of serde and prost describe only the caller's own bytes.
fn decode<T: DeserializeOwned + prost::Message + Default>(
    encoding: BodyEncoding,
    bytes: &[u8],
) -> Result<T, ApiError> {
    match encoding {
        BodyEncoding::Json => serde_json::from_slice(bytes).map_err(|e| malformed(&e)),
        BodyEncoding::Protobuf => T::decode(bytes).map_err(|e| malformed(&e)),
    }
}

fn peer(extensions: &Extensions) -> &RequestPeer {
    extensions.get().expect("accept adds it to each request")
}

impl FromRequest<Arc<AppState>> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ApiError> {
        let (bytes_max, wait_max) = (app.config.body_bytes_max, app.config.request_timeout);
        Self::read(request, app, BodyLimits { bytes_max, wait_max, is_long: true }).await
    }
}

/// A small body, decoded.
pub(crate) struct RequestBody<T>(pub(crate) T);

impl<T: DeserializeOwned + prost::Message + Default> FromRequest<Arc<AppState>> for RequestBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ApiError> {
        let body = RawBody::read_form(request, app).await?;
        body.decode_form(decode).map(Self)
    }
}

/// A small body of a call that accepts only JSON.
pub(crate) struct JsonRequestBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for JsonRequestBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ApiError> {
        let body = RawBody::read_form(request, app).await?;
        let form = body.decode_form(|encoding, bytes| match encoding {
            BodyEncoding::Json => serde_json::from_slice(bytes).map_err(|e| malformed(&e)),
            BodyEncoding::Protobuf => {
                let message = "this call accepts only application/json";
                Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
            }
        });
        form.map(Self)
    }
}

pub(crate) fn check_count(count: usize, count_max: usize, what: &str) -> Result<(), ApiError> {
    if count <= count_max {
        return Ok(());
    }
    let message = format!("a request can contain at most {count_max} {what}");
    Err(ApiError::new(ErrorCode::TooLarge, message))
}

/// Counts the items of a protobuf message whose field 1 is a list.
fn count_items(mut body: &[u8]) -> Result<usize, ApiError> {
    let mut count = 0;
    while !body.is_empty() {
        let (tag, wire_type) = decode_key(&mut body).map_err(|e| malformed(&e))?;
        skip_field(wire_type, tag, &mut body, DecodeContext::default())
            .map_err(|e| malformed(&e))?;
        count += usize::from(tag == 1);
    }
    Ok(count)
}

pub(crate) fn malformed(error: &dyn std::error::Error) -> ApiError {
    ApiError::new(ErrorCode::Malformed, error.to_string())
}

/// Returns a header's value, or an empty text if it is missing or not text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns a media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

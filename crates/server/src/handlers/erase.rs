//! `/v1/sync/erase`: permanently replaces contents with reduced ones.
//!
//! # Invariants
//! - The request needs the account's password in addition to a device's token: a stolen device
//!   cannot erase data.
//! - The server cannot read contents. A device accepts another content for a message that it knows
//!   only if the new one is a reduction of the old one (`replica`, `ingest.rs`).

use std::net::IpAddr;
use std::sync::Arc;

use accounts::Password;
use axum::Extension;
use axum::extract::State;
use crdt::EncryptionMode;
use engine::clock;
use protocol::{EraseRequest, ErrorCode, PushResponse};
use sync_store::MessageErasure;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use crate::admission::memory::MemoryReservation;
use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::handlers::{encryption, sync};
use crate::http::extract::{AuthenticatedDevice, BodyEncoding, RawBody, check_count};
use crate::http::openapi::{BODY, TOKEN, error_responses};
use crate::http::peer::RequestPeer;
use crate::http::response::ApiResponse;
use crate::subscribers::MessageSetKey;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(erase))
}

error_responses!(EraseErrors: BODY, TOKEN, [
    EncryptionMismatch, InvalidPassword, InvalidTimestamp, QuotaExceeded, StaleCursor,
    TimestampConflict, TooManyAttempts, WrongPassword
]);

/// Replaces the contents of messages with reduced contents. No page of the vault contains the old
/// ones afterwards. All or nothing; repeating the request changes nothing.
#[utoipa::path(
    post, path = "/v1/sync/erase", tag = "sync", operation_id = "erase",
    security(("token" = [])),
    request_body = EraseRequest,
    responses((status = 200, description = "The contents were erased, also on the disk", body = PushResponse), EraseErrors),
)]
async fn erase(
    State(app): State<Arc<AppState>>,
    Extension(RequestPeer { address, .. }): Extension<RequestPeer>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
    body: RawBody,
) -> Result<ApiResponse, ApiError> {
    app.check_disk()?;
    let count_max = app.config.messages_count_max;
    // The memory stays reserved until everything is stored.
    let decoded = blocking(move || EraseRequestBody::from(body, count_max)).await?;
    let EraseRequestBody { mode, erasures, password, _room } = decoded;
    prove(&app, &device, address, password).await?;
    encryption::check_mode_before_store(&app, &device, mode, erasures.is_empty()).await?;
    let AuthenticatedDevice { session, vault, .. } = &device;
    let erased = vault.erase(erasures, app.quota(session)).await?;
    if erased.stored > 0 {
        app.subscribers.notify_stored(MessageSetKey::for_session(session), erased.after);
    }
    Ok(ApiResponse::ok(
        encoding,
        &sync::to_answer(&erased, session.message_set.id, clock::now_ms()),
    ))
}

/// The decoded and checked body of a request.
struct EraseRequestBody {
    mode: EncryptionMode,
    erasures: Vec<MessageErasure>,
    password: Zeroizing<String>,
    _room: MemoryReservation,
}

impl EraseRequestBody {
    fn from(body: RawBody, count_max: usize) -> Result<Self, ApiError> {
        body.check_count(count_max, "erasures")?;
        let (request, reservation): (EraseRequest, _) = body.decode_and_wipe()?;
        let EraseRequest { erasures, password, key_id } = request;
        let password = Zeroizing::new(password);
        check_count(erasures.len(), count_max, "erasures")?;
        let mode = encryption::parse_encryption_mode(&key_id)?;
        let erasures: Vec<_> = erasures.into_iter().map(check).collect::<Result<_, _>>()?;
        encryption::check_contents(mode, erasures.iter().map(|one| &one.message))?;
        let mut timestamps: Vec<_> = erasures.iter().map(|one| one.message.timestamp).collect();
        timestamps.sort_unstable();
        if timestamps.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ApiError::from_code(ErrorCode::TimestampConflict));
        }
        Ok(Self { mode, erasures, password, _room: reservation })
    }
}

fn check(erasure: protocol::WireErasure) -> Result<MessageErasure, ApiError> {
    let protocol::WireErasure { timestamp, content, hash } = erasure;
    let message = sync::check(protocol::WireMessage { timestamp, content })?;
    let hash = <[u8; 16]>::try_from(&hash[..]).ok();
    let hash =
        hash.ok_or_else(|| ApiError::new(ErrorCode::Malformed, "a hash must have 16 bytes"))?;
    Ok(MessageErasure { message, hash: u128::from_be_bytes(hash) })
}

/// Checks that the client knows the password of the device's account.
async fn prove(
    app: &Arc<AppState>,
    device: &AuthenticatedDevice,
    address: IpAddr,
    password: Zeroizing<String>,
) -> Result<(), ApiError> {
    // No account has an invalid password, so to the caller it is just a wrong one.
    let password = Password::parse(password.to_string())
        .or(Err(ApiError::from_code(ErrorCode::WrongPassword)))?;
    app.log_in(device.session.login.clone(), password, address, AppState::unlock).await?;
    Ok(())
}

//! `/v1/sync/erase`: contents that say less take the place of others, for good.
//!
//! # Invariants
//! - It takes the account's password beside a device's token: who has stolen a device erases
//!   nothing.
//! - The server cannot tell what a content says: a device takes another content for a message that
//!   it knows only if that says less (`replica`, `receive.rs`).

use std::net::IpAddr;
use std::sync::Arc;

use accounts::Password;
use axum::Extension;
use axum::extract::State;
use crdt::ContentForm;
use protocol::{EraseRequest, ErrorCode, PushResponse};
use sync_store::Erasure;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use crate::admission::memory::Room;
use crate::app::{App, blocking};
use crate::clock;
use crate::error::Refusal;
use crate::extract::{Device, Encoding, Peer, RawBody, check_count};
use crate::handlers::{encryption, sync};
use crate::listeners::ListenedSet;
use crate::openapi::{BODY, TOKEN, refusals};
use crate::respond::Reply;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(erase))
}

refusals!(EraseRefusals: BODY, TOKEN, [
    Behind, FormMismatch, InvalidPassword, InvalidTimestamp, QuotaExceeded, TimestampConflict,
    TooManyAttempts, WrongPassword
]);

/// Gives messages other contents, which say less: what they were is on no page of the vault any
/// more. All or nothing; asking again changes nothing.
#[utoipa::path(
    post, path = "/v1/sync/erase", tag = "sync", operation_id = "erase",
    security(("token" = [])),
    request_body = EraseRequest,
    responses((status = 200, description = "erased, on the disk, too", body = PushResponse), EraseRefusals),
)]
async fn erase(
    State(app): State<Arc<App>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    encoding: Encoding,
    device: Device,
    body: RawBody,
) -> Result<Reply, Refusal> {
    app.check_disk()?;
    let count_max = app.config.messages_count_max;
    // The room is kept until everything is stored.
    let decoded = blocking(move || Decoded::from(body, count_max)).await?;
    let Decoded { form, erasures, password, _room } = decoded;
    prove(&app, &device, address, password).await?;
    encryption::check_before(&app, &device, form, erasures.is_empty()).await?;
    let Device { session, vault, .. } = &device;
    let erased = vault.erase(erasures, app.quota(session)).await?;
    if erased.stored > 0 {
        app.listeners.stored(ListenedSet::of(session), erased.after);
    }
    Ok(Reply::ok(encoding, &sync::to_answer(&erased, session.set.id, clock::now_ms())))
}

/// What a request says.
struct Decoded {
    form: ContentForm,
    erasures: Vec<Erasure>,
    password: Zeroizing<String>,
    _room: Room,
}

impl Decoded {
    fn from(body: RawBody, count_max: usize) -> Result<Self, Refusal> {
        body.check_count(count_max, "erasures")?;
        let (request, room): (EraseRequest, _) = body.decode_and_wipe()?;
        let EraseRequest { erasures, password, key_id } = request;
        let password = Zeroizing::new(password);
        check_count(erasures.len(), count_max, "erasures")?;
        let form = encryption::form_of(&key_id)?;
        let erasures: Vec<_> = erasures.into_iter().map(check).collect::<Result<_, _>>()?;
        encryption::check_contents(form, erasures.iter().map(|one| &one.message))?;
        let mut timestamps: Vec<_> = erasures.iter().map(|one| one.message.timestamp).collect();
        timestamps.sort_unstable();
        if timestamps.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refusal::of(ErrorCode::TimestampConflict));
        }
        Ok(Self { form, erasures, password, _room: room })
    }
}

fn check(erasure: protocol::Erasure) -> Result<Erasure, Refusal> {
    let protocol::Erasure { timestamp, content, hash } = erasure;
    let message = sync::check(protocol::Message { timestamp, content })?;
    let hash = <[u8; 16]>::try_from(&hash[..]).ok();
    let hash = hash.ok_or_else(|| Refusal::new(ErrorCode::Malformed, "a hash has 16 bytes"))?;
    Ok(Erasure { message, hash: u128::from_be_bytes(hash) })
}

/// That whoever asks knows the password of the device's account.
async fn prove(
    app: &Arc<App>,
    device: &Device,
    address: IpAddr,
    password: Zeroizing<String>,
) -> Result<(), Refusal> {
    // No account has a password that is none: to the caller it is just a wrong one.
    let password =
        Password::parse(password.to_string()).or(Err(Refusal::of(ErrorCode::WrongPassword)))?;
    app.log_in(device.session.login.clone(), password, address, App::unlock).await?;
    Ok(())
}

//! `/v1/sync/reconcile`: compares ranges of two sets in one round of set reconciliation.
//!
//! # Invariants
//! - At most as many comparisons run as there are cores, because each may read a whole vault.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use engine::clock;
use protocol::{ErrorCode, ReconcileRequest, ReconcileResponse, WireMessage, WireRangeBucket};
use sync_store::{RangeClaim, RangeDiff, RangeSummary};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admission::memory::{MemoryReservation, page_bytes};
use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::handlers::sync::PAGE_BYTES_MIN;
use crate::http::extract::{AuthenticatedDevice, BodyEncoding, RawBody, check_count};
use crate::http::openapi::{BODY, TOKEN, error_responses};
use crate::http::response::ApiResponse;

/// The maximum number of claims in one request. Requests of devices have at most about 70,000.
const CLAIMS_COUNT_MAX: usize = 100_000;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(reconcile))
}

error_responses!(ReconcileErrors: BODY, TOKEN, []);

/// Compares the device's claims with the messages in the vault.
#[utoipa::path(
    post, path = "/v1/sync/reconcile", tag = "sync", operation_id = "reconcile",
    security(("token" = [])),
    request_body = ReconcileRequest,
    responses((status = 200, description = "A range diff for each claim", body = ReconcileResponse), ReconcileErrors),
)]
async fn reconcile(
    State(app): State<Arc<AppState>>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
    body: RawBody,
) -> Result<ApiResponse, ApiError> {
    let (claims, asked) = blocking(move || decode(body)).await?;
    let permit = app.reconcile_permit(device.session.account).await?;
    let mut reservation = app.memory_reservation(device.holder);
    let bytes_max = reservation.reserve_page(protocol::PAGE_BYTES_MAX, PAGE_BYTES_MIN).await?;
    let state = device.vault.summary().await?;
    let vault = device.vault.as_ref();
    let findings = sync_store::reconcile(vault, &claims, bytes_max).await?;
    drop(permit);
    let found = findings.iter().map(|finding| match finding {
        RangeDiff::Difference { messages, .. } => page_bytes(messages),
        RangeDiff::Equal | RangeDiff::Buckets(_) => 0,
    });
    reservation.grow_to_page(found.sum()).await?;
    let (cursor, now_ms, set_id) = (state.cursor, clock::now_ms(), device.session.message_set.id);
    let fingerprint = Some(state.fingerprint.into());
    blocking(move || {
        let answers = claims.iter().zip(findings).map(|(claim, found)| to_wire(claim, found));
        let findings = answers.collect();
        let response = ReconcileResponse {
            diffs: findings,
            cursor,
            fingerprint,
            server_time_ms: now_ms,
            set_id,
        };
        drop(asked);
        Ok(ApiResponse::ok(encoding, &response).with_reservation(reservation))
    })
    .await
}

fn decode(body: RawBody) -> Result<(Vec<RangeClaim>, MemoryReservation), ApiError> {
    body.check_count(CLAIMS_COUNT_MAX, "claims")?;
    let (request, reservation): (ReconcileRequest, _) = body.decode()?;
    check_count(request.claims.len(), CLAIMS_COUNT_MAX, "claims")?;
    let mut end: u64 = 0;
    let claim = |claim: protocol::WireRangeClaim| {
        let start = end.checked_add(claim.gap);
        end = start.and_then(|start| start.checked_add(claim.length)).ok_or_else(past_the_end)?;
        let time_range = start.ok_or_else(past_the_end)?..end;
        let protocol::WireRangeClaim { count, digest, ids, .. } = claim;
        let is_sum = ids.is_empty() && count > 0;
        let holds = if is_sum {
            RangeSummary::Fingerprint { count, digest }
        } else {
            RangeSummary::Ids(ids)
        };
        Ok(RangeClaim { time_range, summary: holds })
    };
    let claims = request.claims.into_iter().map(claim).collect::<Result<_, ApiError>>()?;
    Ok((claims, reservation))
}

fn past_the_end() -> ApiError {
    ApiError::new(ErrorCode::Malformed, "a claim ends after the latest possible time")
}

fn to_wire(claim: &RangeClaim, finding: RangeDiff) -> protocol::WireRangeDiff {
    let Range { start, .. } = claim.time_range;
    match finding {
        RangeDiff::Equal => protocol::WireRangeDiff { equal: true, ..Default::default() },
        RangeDiff::Buckets(parts) => {
            let ends = parts.iter().map(|part| part.end);
            let starts = [start].into_iter().chain(ends);
            let parts = starts.zip(&parts).map(|(start, part)| WireRangeBucket {
                length: part.end - start,
                count: part.fingerprint.count,
                digest: part.fingerprint.short_digest(),
            });
            protocol::WireRangeDiff { buckets: parts.collect(), ..Default::default() }
        }
        RangeDiff::Difference { messages, wanted, end } => protocol::WireRangeDiff {
            messages: messages.into_iter().map(WireMessage::from).collect(),
            wanted,
            examined_length: end.map_or(0, |end| end - start),
            ..Default::default()
        },
    }
}

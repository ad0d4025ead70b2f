//! `/v1/sync/reconcile`: one round of finding out where two sets differ.
//!
//! # Invariants
//! - As many comparisons run as there are cores: each may read a whole vault.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use protocol::{ErrorCode, Message, Part, ReconcileRequest, ReconcileResponse};
use sync_store::{Claim, Finding, Holds};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admission::memory::{Room, page_bytes};
use crate::app::{App, blocking};
use crate::clock;
use crate::error::Refusal;
use crate::extract::{Device, Encoding, RawBody, check_count};
use crate::handlers::sync::PAGE_BYTES_MIN;
use crate::openapi::{BODY, TOKEN, refusals};
use crate::respond::Reply;

/// Claims of one request. A device's own requests have at most some 70,000.
const CLAIMS_COUNT_MAX: usize = 100_000;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(reconcile))
}

refusals!(ReconcileRefusals: BODY, TOKEN, []);

/// Compares what the device claims to hold with what the vault holds.
#[utoipa::path(
    post, path = "/v1/sync/reconcile", tag = "sync", operation_id = "reconcile",
    security(("token" = [])),
    request_body = ReconcileRequest,
    responses((status = 200, description = "a finding for each claim", body = ReconcileResponse), ReconcileRefusals),
)]
async fn reconcile(
    State(app): State<Arc<App>>,
    encoding: Encoding,
    device: Device,
    body: RawBody,
) -> Result<Reply, Refusal> {
    let (claims, asked) = blocking(move || decode(body)).await?;
    let turn = app.comparison(device.session.account).await?;
    let mut room = app.room(device.holder);
    let bytes_max = room.take_page(protocol::PAGE_BYTES_MAX, PAGE_BYTES_MIN).await?;
    let state = device.vault.state().await?;
    let vault = device.vault.as_ref();
    let findings = sync_store::reconcile(vault, &claims, bytes_max).await?;
    drop(turn);
    let found = findings.iter().map(|finding| match finding {
        Finding::Listed { messages, .. } => page_bytes(messages),
        Finding::Equal | Finding::Parts(_) => 0,
    });
    room.cover_page(found.sum()).await?;
    let (cursor, now_ms, set_id) = (state.cursor, clock::now_ms(), device.session.set.id);
    let fingerprint = Some(state.fingerprint.into());
    blocking(move || {
        let answers = claims.iter().zip(findings).map(|(claim, found)| to_wire(claim, found));
        let findings = answers.collect();
        let response = ReconcileResponse { findings, cursor, fingerprint, now_ms, set_id };
        drop(asked);
        Ok(Reply::ok(encoding, &response).within(room))
    })
    .await
}

fn decode(body: RawBody) -> Result<(Vec<Claim>, Room), Refusal> {
    body.check_count(CLAIMS_COUNT_MAX, "claims")?;
    let (request, room): (ReconcileRequest, _) = body.decode()?;
    check_count(request.claims.len(), CLAIMS_COUNT_MAX, "claims")?;
    let mut end: u64 = 0;
    let claim = |claim: protocol::Claim| {
        let start = end.checked_add(claim.gap);
        end = start.and_then(|start| start.checked_add(claim.length)).ok_or_else(past_the_end)?;
        let moments = start.ok_or_else(past_the_end)?..end;
        let protocol::Claim { count, digest, ids, .. } = claim;
        let is_sum = ids.is_empty() && count > 0;
        let holds = if is_sum { Holds::Sum { count, digest } } else { Holds::Ids(ids) };
        Ok(Claim { moments, holds })
    };
    let claims = request.claims.into_iter().map(claim).collect::<Result<_, Refusal>>()?;
    Ok((claims, room))
}

fn past_the_end() -> Refusal {
    Refusal::new(ErrorCode::Malformed, "a claim ends after the end of time")
}

fn to_wire(claim: &Claim, finding: Finding) -> protocol::Finding {
    let Range { start, .. } = claim.moments;
    match finding {
        Finding::Equal => protocol::Finding { equal: true, ..Default::default() },
        Finding::Parts(parts) => {
            let ends = parts.iter().map(|part| part.end);
            let starts = [start].into_iter().chain(ends);
            let parts = starts.zip(&parts).map(|(start, part)| Part {
                length: part.end - start,
                count: part.fingerprint.count,
                digest: part.fingerprint.short(),
            });
            protocol::Finding { parts: parts.collect(), ..Default::default() }
        }
        Finding::Listed { messages, wanted, end } => protocol::Finding {
            messages: messages.into_iter().map(Message::from).collect(),
            wanted,
            length: end.map_or(0, |end| end - start),
            ..Default::default()
        },
    }
}

//! What was inspected.

use serde::Serialize;
use utoipa::ToSchema;

/// What was inspected.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum InspectedKind {
    /// A tracked file.
    Replica,
    /// An account's vault.
    Vault,
}

//! Defines the kinds of things that can be inspected.

use serde::Serialize;
use utoipa::ToSchema;

/// The kind of the inspected database.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum InspectedKind {
    /// A tracked file.
    Replica,
    /// An account's vault.
    Vault,
}

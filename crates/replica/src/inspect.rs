//! Reads a replica's state for people, and corrects it at their request.

pub(crate) mod change_origin;
pub(crate) mod conflicts;
pub(crate) mod deleted;
pub(crate) mod devices;
pub(crate) mod edit;
pub(crate) mod erasure;
pub(crate) mod hidden_rows;
pub(crate) mod history;
pub(crate) mod json;
pub(crate) mod replica_status;
mod short_id;
pub(crate) mod sync_status;
pub(crate) mod verify;

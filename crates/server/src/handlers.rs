//! The handlers of the API: one file per resource, each with its own `router()`.

pub(crate) mod accounts;
pub(crate) mod admin;
pub(crate) mod devices;
pub(crate) mod encryption;
pub(crate) mod erase;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod reconcile;
pub(crate) mod sync;

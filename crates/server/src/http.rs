//! The HTTP layer: how requests arrive and responses leave, for all resources.

pub(crate) mod accept;
pub(crate) mod cors;
pub(crate) mod extract;
pub(crate) mod openapi;
pub(crate) mod peer;
pub(crate) mod response;
pub(crate) mod router;
pub(crate) mod site;
pub(crate) mod socket;
pub(crate) mod stream_body;
pub(crate) mod tls;

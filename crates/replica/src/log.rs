//! Stores, seals and opens the messages of all devices.

pub(crate) mod content_codec;
pub(crate) mod ingest;
pub(crate) mod message_log;
pub(crate) mod rejected;
pub(crate) mod replace_timestamp;
pub(crate) mod value_chunks;

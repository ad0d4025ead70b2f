//! Defines the wire types for erasing contents permanently from a vault
//! (`docs/reference/formats/3-http-api.md`).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/sync/erase`: reduced contents that replace the contents of messages. The response is a
/// `PushResponse`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
pub struct EraseRequest {
    /// The erasures; each timestamp occurs only once.
    #[prost(message, repeated, tag = "1")]
    pub erasures: Vec<WireErasure>,
    /// The password of the account; a device token alone is not enough.
    #[prost(string, tag = "2")]
    pub password: String,
    /// The encryption mode of the contents, as in `EncryptionMode`.
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(default, with = "crate::json::key_id")]
    #[schema(value_type = String, example = "")]
    pub key_id: Bytes,
}

/// The timestamp of a message whose content is erased, and the new content.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Erasure)]
pub struct WireErasure {
    /// The timestamp of the message, as in `Message`.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::timestamp")]
    #[schema(value_type = String, example = "2026-11-21T06:30:00.123Z-0000-a1b2c3d4e5f60718")]
    pub timestamp: Bytes,
    /// The new content of the message, as in `Message`.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "crate::json::base64")]
    #[schema(value_type = String, format = Byte, example = "AQU=")]
    pub content: Bytes,
    /// The current hash of the message (Format 2, Fingerprint): 16 bytes, in JSON 32 hex digits.
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "crate::json::digest")]
    #[schema(value_type = String, example = "00000000000000000000000000000000")]
    pub hash: Bytes,
}

//! The wire types, each one struct for JSON and protobuf (`docs/reference/formats/3-http-api.md`).
//!
//! # Invariants
//! - Field names and tags are those of `proto/warren.proto`; a test compares them.
//! - A decoded type is not yet checked: [`WireMessage`] becomes a [`crdt::Message`] in one place,
//!   here.

mod erase;
mod reconcile;

use bytes::Bytes;
use crdt::{ParseTimestampError, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::erase::{EraseRequest, WireErasure};
pub use self::reconcile::{
    ReconcileRequest, ReconcileResponse, WireRangeBucket, WireRangeClaim, WireRangeDiff,
};

/// One message on the wire.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Message)]
pub struct WireMessage {
    /// 16 bytes; in JSON the canonical text.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::timestamp")]
    #[schema(value_type = String, example = "2026-11-21T06:30:00.123Z-0000-a1b2c3d4e5f60718")]
    pub timestamp: Bytes,
    /// Opaque bytes; in JSON base64.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "crate::json::base64")]
    #[schema(value_type = String, format = Byte, example = "aGVsbG8=")]
    pub content: Bytes,
}

/// Count and digest of a vault's set of messages.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = Fingerprint)]
pub struct WireFingerprint {
    /// Messages in the set.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// 16 bytes, big-endian; in JSON 32 hex digits.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "crate::json::digest")]
    #[schema(value_type = String, example = "00000000000000000000000000000000")]
    pub digest: Bytes,
}

/// How the contents of an account's messages are written.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = EncryptionMode)]
pub struct WireEncryptionMode {
    /// The id of the key that seals them, 8 bytes; empty: they are in plain. In JSON hex digits.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::key_id")]
    #[schema(value_type = String, example = "56c96c572ddbe567")]
    pub key_id: Bytes,
}

/// `POST /v1/sync/delta`: messages to store.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PushRequest {
    /// In any order; what is known already is counted, not stored.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<WireMessage>,
    /// The encryption mode of their contents, as in `EncryptionMode`; of an account that has none
    /// yet, from now on that of all its messages.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(default, with = "crate::json::key_id")]
    #[schema(value_type = String, example = "")]
    pub key_id: Bytes,
    /// The device's cursor, if the messages are to be stored only as long as nothing has arrived
    /// after it; left out, they are stored whatever has.
    #[prost(uint64, optional, tag = "3")]
    #[serde(default)]
    pub expected_cursor: Option<u64>,
    /// The id of the set that `expected_cursor` is a cursor of, as the last answer had it. In JSON
    /// 16 hex digits.
    #[prost(fixed64, tag = "4")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// The answer to a `PushRequest` or an `EraseRequest`: everything in it is durable.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct PushResponse {
    /// Messages that were new, or got another content.
    #[prost(uint64, tag = "1")]
    pub stored_count: u64,
    /// Messages that the vault had already, with this content.
    #[prost(uint64, tag = "2")]
    pub known_count: u64,
    /// The newest sequence number; those of this request end here, without gaps.
    #[prost(uint64, tag = "3")]
    pub cursor: u64,
    /// The whole set, after storing.
    #[prost(message, optional, tag = "4")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The server's clock, milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub server_time_ms: u64,
    /// The id of the set that the cursor is of. With another set, cursors begin at 0 again. In JSON
    /// 16 hex digits.
    #[prost(fixed64, tag = "6")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// `GET /v1/sync/delta`: what arrived after a cursor.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct PullResponse {
    /// In order of arrival.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<WireMessage>,
    /// The sequence number of the last of these messages, or the vault's newest if there are none.
    #[prost(uint64, tag = "2")]
    pub cursor: u64,
    /// Whether more follow.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// The whole set.
    #[prost(message, optional, tag = "4")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The server's clock, milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub server_time_ms: u64,
    /// The account's; absent until the first push. After `POST /v1/sync/e2ee` it is that of the
    /// e2ee set, also while a device still reads the plain one.
    #[prost(message, optional, tag = "6")]
    #[serde(default)]
    pub encryption: Option<WireEncryptionMode>,
    /// The id of the set that the cursor is of. With another set, cursors begin at 0 again. In JSON
    /// 16 hex digits.
    #[prost(fixed64, tag = "7")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
    /// Whether the account is encrypted end to end, and this is still its plain set.
    #[prost(bool, tag = "8")]
    pub in_plain: bool,
    /// What the server has lost of this set and not got back; absent if nothing.
    #[prost(message, optional, tag = "9")]
    #[serde(default)]
    pub loss: Option<ServerLoss>,
}

/// Messages that the server could not read any more, because its disk had damaged them. Devices
/// that have them send them again.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerLoss)]
pub struct ServerLoss {
    /// When the server found out, milliseconds since 1970.
    #[prost(uint64, tag = "1")]
    pub repaired_ms: u64,
    /// How many are still missing; absent if the server doesn't know.
    #[prost(uint64, optional, tag = "2")]
    #[serde(default)]
    pub missing_count: Option<u64>,
    /// Names of the account's other devices that have not synced since: twenty at most.
    #[prost(string, repeated, tag = "3")]
    pub devices_away: Vec<String>,
}

/// `POST /v1/sync/e2ee`: turns an account to end-to-end encryption, or follows a device that has.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnableE2eeRequest)]
pub struct EnableE2eeRequest {
    /// The id of the key, as in `EncryptionMode`.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::key_id")]
    #[schema(value_type = String, example = "56c96c572ddbe567")]
    pub key_id: Bytes,
    /// The plain set's fingerprint: this device has all of it. Left out, the device's file is
    /// sealed already and takes nothing more from the plain set; it can follow, not start.
    #[prost(message, optional, tag = "2")]
    #[serde(default)]
    pub holds: Option<WireFingerprint>,
    /// Whether an account that is in plain may be turned, or only followed.
    #[prost(bool, tag = "3")]
    #[serde(default)]
    pub start: bool,
}

/// `POST /v1/accounts`: a new account.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {
    /// 1 to 64 letters, digits and `. _ @ + -`; case does not matter.
    #[prost(string, tag = "1")]
    #[schema(example = "ada")]
    pub login: String,
    /// 8 to 1,024 bytes.
    #[prost(string, tag = "2")]
    #[schema(example = "correct horse battery")]
    pub password: String,
}

/// The account that was made.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct AccountResponse {
    /// The login as it is stored: in lower case.
    #[prost(string, tag = "1")]
    pub login: String,
}

/// `PUT /v1/accounts/password`: another password.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
pub struct PasswordRequest {
    /// Whose.
    #[prost(string, tag = "1")]
    #[schema(example = "ada")]
    pub login: String,
    /// The present one.
    #[prost(string, tag = "2")]
    pub password: String,
    /// The next one: 8 to 1,024 bytes.
    #[prost(string, tag = "3")]
    pub new_password: String,
    /// Whether it ends every device but the one whose token comes with the request.
    #[prost(bool, tag = "4")]
    #[serde(default)]
    pub revoke_others: bool,
}

/// `POST /v1/devices`: registers a device, by login and password, or by the token of a device.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
#[schema(as = RegisterDeviceRequest)]
pub struct RegisterDeviceRequest {
    /// Empty when a token is sent.
    #[prost(string, tag = "1")]
    #[serde(default)]
    #[schema(example = "ada")]
    pub login: String,
    /// Empty when a token is sent.
    #[prost(string, tag = "2")]
    #[serde(default)]
    pub password: String,
    /// What people call the device; at most 200 characters.
    #[prost(string, tag = "3")]
    #[serde(default)]
    #[schema(example = "Ada's laptop")]
    pub name: String,
}

/// A registered device.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[schema(as = RegisterDeviceResponse)]
pub struct RegisterDeviceResponse {
    /// 16 hex digits.
    #[prost(string, tag = "1")]
    pub device_id: String,
    /// The device's secret, shown this once: the server keeps only a hash.
    #[prost(string, tag = "2")]
    pub token: String,
    /// The account's; absent until the first push.
    #[prost(message, optional, tag = "3")]
    #[serde(default)]
    pub encryption: Option<WireEncryptionMode>,
}

/// A device of the account.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = Device)]
pub struct DeviceInfo {
    /// 16 hex digits.
    #[prost(string, tag = "1")]
    pub device_id: String,
    /// What people call it.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Up to which sequence number it has what the vault has.
    #[prost(uint64, tag = "3")]
    pub cursor: u64,
    /// When it last synced, milliseconds since 1970; 0 if never.
    #[prost(uint64, tag = "4")]
    pub last_seen_ms: u64,
    /// When it was registered, milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub created_ms: u64,
    /// Whether it is the one that asks.
    #[prost(bool, tag = "6")]
    pub current: bool,
    /// The node id in the timestamps of its changes: 16 hex digits, or empty if it has not said so.
    #[prost(string, tag = "7")]
    #[serde(default)]
    #[schema(required)]
    pub node_id: String,
    /// Changes that it had yet to send when it was last heard of.
    #[prost(uint64, tag = "8")]
    #[serde(default)]
    #[schema(required)]
    pub unsent_count: u64,
    /// Messages of the vault that it has yet to fetch.
    #[prost(uint64, tag = "9")]
    #[serde(default)]
    #[schema(required)]
    pub pending_download_count: u64,
    /// The device whose token registered it, and with which it is revoked; empty if the password
    /// did.
    #[prost(string, tag = "10")]
    #[serde(default)]
    #[schema(required)]
    pub registered_by: String,
}

/// `GET /v1/devices`: the account's devices.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = DeviceList)]
pub struct DeviceList {
    /// In order of registration.
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<DeviceInfo>,
    /// The vault's newest sequence number.
    #[prost(uint64, tag = "2")]
    #[serde(default)]
    #[schema(required)]
    pub cursor: u64,
    /// The whole set.
    #[prost(message, optional, tag = "3")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The server's clock, milliseconds since 1970.
    #[prost(uint64, tag = "4")]
    #[serde(default)]
    #[schema(required)]
    pub server_time_ms: u64,
}

impl From<crdt::Message> for WireMessage {
    fn from(message: crdt::Message) -> Self {
        let timestamp = Bytes::copy_from_slice(&message.timestamp.to_bytes());
        Self { timestamp, content: message.content }
    }
}

impl TryFrom<WireMessage> for crdt::Message {
    type Error = ParseTimestampError;

    fn try_from(message: WireMessage) -> Result<Self, ParseTimestampError> {
        let timestamp = Timestamp::from_bytes(&message.timestamp)?;
        Ok(Self { timestamp, content: message.content })
    }
}

impl From<crdt::EncryptionMode> for WireEncryptionMode {
    fn from(form: crdt::EncryptionMode) -> Self {
        Self { key_id: Bytes::copy_from_slice(form.as_bytes()) }
    }
}

impl WireEncryptionMode {
    /// As a value to compare; `None` if the key's id has not 8 bytes.
    pub fn to_crdt(&self) -> Option<crdt::EncryptionMode> {
        crdt::EncryptionMode::from_bytes(&self.key_id)
    }
}

impl From<crdt::Fingerprint> for WireFingerprint {
    fn from(fingerprint: crdt::Fingerprint) -> Self {
        let digest = Bytes::copy_from_slice(&fingerprint.digest_bytes());
        Self { count: fingerprint.count, digest }
    }
}

impl WireFingerprint {
    /// As a value to compare; `None` if the digest has not 16 bytes.
    pub fn to_crdt(&self) -> Option<crdt::Fingerprint> {
        let digest = u128::from_be_bytes(<[u8; 16]>::try_from(&self.digest[..]).ok()?);
        Some(crdt::Fingerprint { count: self.count, digest })
    }
}

/// Requests that carry a password, and the answer that carries a token, print without them.
macro_rules! redacted_debug {
    ($($type:ident),*) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}
redacted_debug!(
    AccountRequest,
    PasswordRequest,
    RegisterDeviceRequest,
    RegisterDeviceResponse,
    EraseRequest
);

#[cfg(test)]
mod tests;

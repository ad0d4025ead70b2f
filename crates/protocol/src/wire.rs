//! Defines the wire types, each one struct for JSON and protobuf
//! (`docs/reference/formats/3-http-api.md`).
//!
//! # Invariants
//! - Field names and tags are those of `proto/warren.proto`; a test compares them.
//! - A decoded type is not checked yet: [`WireMessage`] becomes a [`crdt::Message`] only here.

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

/// A message: its timestamp and its content.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Message)]
pub struct WireMessage {
    /// The timestamp: 16 bytes; in JSON the canonical text.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::timestamp")]
    #[schema(value_type = String, example = "2026-11-21T06:30:00.123Z-0000-a1b2c3d4e5f60718")]
    pub timestamp: Bytes,
    /// The content as opaque bytes; in JSON base64.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "crate::json::base64")]
    #[schema(value_type = String, format = Byte, example = "aGVsbG8=")]
    pub content: Bytes,
}

/// The number and the digest of a vault's messages.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = Fingerprint)]
pub struct WireFingerprint {
    /// The number of messages in the set.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The digest of the messages: 16 bytes, big-endian; in JSON 32 hex digits.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "crate::json::digest")]
    #[schema(value_type = String, example = "00000000000000000000000000000000")]
    pub digest: Bytes,
}

/// The encryption mode of an account's messages.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = EncryptionMode)]
pub struct WireEncryptionMode {
    /// The id of the end-to-end encryption key, 8 bytes; empty if the messages are not encrypted.
    /// In JSON hex digits.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::key_id")]
    #[schema(value_type = String, example = "56c96c572ddbe567")]
    pub key_id: Bytes,
}

/// `POST /v1/sync/delta`: the messages to store.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PushRequest {
    /// The messages in any order. Known messages are counted, but not stored again.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<WireMessage>,
    /// The encryption mode of the contents, as in `EncryptionMode`. The first push sets the mode of
    /// the account.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(default, with = "crate::json::key_id")]
    #[schema(value_type = String, example = "")]
    pub key_id: Bytes,
    /// The device's cursor: the messages are stored only if nothing has arrived after it. If it is
    /// absent, they are always stored.
    #[prost(uint64, optional, tag = "3")]
    #[serde(default)]
    pub expected_cursor: Option<u64>,
    /// The id of the message set that `expected_cursor` belongs to, from the last response; in JSON
    /// 16 hex digits.
    #[prost(fixed64, tag = "4")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// The response to a `PushRequest` or an `EraseRequest`: all messages of the request are durable.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct PushResponse {
    /// The number of messages that were new or got different content.
    #[prost(uint64, tag = "1")]
    pub stored_count: u64,
    /// The number of messages that the vault already had with the same content.
    #[prost(uint64, tag = "2")]
    pub known_count: u64,
    /// The newest sequence number of the vault. The new messages of the request have consecutive
    /// numbers up to it.
    #[prost(uint64, tag = "3")]
    pub cursor: u64,
    /// The fingerprint of the whole set after the request.
    #[prost(message, optional, tag = "4")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The time of the server's clock, in milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub server_time_ms: u64,
    /// The id of the message set that the cursor belongs to; in JSON 16 hex digits. In another set,
    /// cursors start at 0 again.
    #[prost(fixed64, tag = "6")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// `GET /v1/sync/delta`: the messages that arrived after a cursor.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct PullResponse {
    /// The messages in order of arrival.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<WireMessage>,
    /// The sequence number of the last of these messages, or the vault's newest if there are none.
    #[prost(uint64, tag = "2")]
    pub cursor: u64,
    /// Whether more messages follow.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// The fingerprint of the whole set.
    #[prost(message, optional, tag = "4")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The time of the server's clock, in milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub server_time_ms: u64,
    /// The encryption mode of the account; absent until the first push. After `POST /v1/sync/e2ee`
    /// it is that of the end-to-end encrypted set, even while a device still reads the plain set.
    #[prost(message, optional, tag = "6")]
    #[serde(default)]
    pub encryption: Option<WireEncryptionMode>,
    /// The id of the message set that the cursor belongs to; in JSON 16 hex digits. In another set,
    /// cursors start at 0 again.
    #[prost(fixed64, tag = "7")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
    /// Whether the account is end-to-end encrypted and this is still its plain set.
    #[prost(bool, tag = "8")]
    pub in_plain: bool,
    /// The messages of this set that the server has lost and not received again; absent if there
    /// are none.
    #[prost(message, optional, tag = "9")]
    #[serde(default)]
    pub loss: Option<ServerLoss>,
}

/// The messages that the server lost to disk damage. Devices that have them send them again.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerLoss)]
pub struct ServerLoss {
    /// The time at which the server repaired the vault, in milliseconds since 1970.
    #[prost(uint64, tag = "1")]
    pub repaired_ms: u64,
    /// The number of messages that are still missing; absent if unknown.
    #[prost(uint64, optional, tag = "2")]
    #[serde(default)]
    pub missing_count: Option<u64>,
    /// The names of the account's other devices that have not synced since, at most twenty.
    #[prost(string, repeated, tag = "3")]
    pub devices_away: Vec<String>,
}

/// `POST /v1/sync/e2ee`: enables end-to-end encryption of an account, or joins an account that has
/// it.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnableE2eeRequest)]
pub struct EnableE2eeRequest {
    /// The id of the end-to-end encryption key, as in `EncryptionMode`.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "crate::json::key_id")]
    #[schema(value_type = String, example = "56c96c572ddbe567")]
    pub key_id: Bytes,
    /// The fingerprint of the plain set, all of which this device has. If absent, the device's file
    /// is already encrypted and reads nothing more from the plain set; it can join, but not start.
    #[prost(message, optional, tag = "2")]
    #[serde(default)]
    pub holds: Option<WireFingerprint>,
    /// Whether the request may enable end-to-end encryption of a plain account. If false, it can
    /// only join an account that has it.
    #[prost(bool, tag = "3")]
    #[serde(default)]
    pub start: bool,
}

/// `POST /v1/accounts`: creates an account.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {
    /// The login: 1 to 64 letters, digits and `. _ @ + -`; case does not matter.
    #[prost(string, tag = "1")]
    #[schema(example = "ada")]
    pub login: String,
    /// The password: 8 to 1,024 bytes.
    #[prost(string, tag = "2")]
    #[schema(example = "correct horse battery")]
    pub password: String,
}

/// The account that was created.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct AccountResponse {
    /// The login as it is stored, in lower case.
    #[prost(string, tag = "1")]
    pub login: String,
}

/// `PUT /v1/accounts/password`: changes the password of an account.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[prost(skip_debug)]
#[serde(deny_unknown_fields)]
pub struct PasswordRequest {
    /// The login of the account.
    #[prost(string, tag = "1")]
    #[schema(example = "ada")]
    pub login: String,
    /// The current password.
    #[prost(string, tag = "2")]
    pub password: String,
    /// The new password: 8 to 1,024 bytes.
    #[prost(string, tag = "3")]
    pub new_password: String,
    /// Whether to revoke all devices except the one whose token is sent with the request.
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
    /// The login of the account; empty when a token is sent.
    #[prost(string, tag = "1")]
    #[serde(default)]
    #[schema(example = "ada")]
    pub login: String,
    /// The password of the account; empty when a token is sent.
    #[prost(string, tag = "2")]
    #[serde(default)]
    pub password: String,
    /// The name of the device, at most 200 characters.
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
    /// The id of the device: 16 hex digits.
    #[prost(string, tag = "1")]
    pub device_id: String,
    /// The device's secret, returned only once: the server stores only a hash.
    #[prost(string, tag = "2")]
    pub token: String,
    /// The encryption mode of the account; absent until the first push.
    #[prost(message, optional, tag = "3")]
    #[serde(default)]
    pub encryption: Option<WireEncryptionMode>,
}

/// A device of the account.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = Device)]
pub struct DeviceInfo {
    /// The id of the device: 16 hex digits.
    #[prost(string, tag = "1")]
    pub device_id: String,
    /// The name of the device.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The sequence number up to which the device has all messages of the vault.
    #[prost(uint64, tag = "3")]
    pub cursor: u64,
    /// The time of the last sync, in milliseconds since 1970; 0 if the device has never synced.
    #[prost(uint64, tag = "4")]
    pub last_seen_ms: u64,
    /// The time of registration, in milliseconds since 1970.
    #[prost(uint64, tag = "5")]
    pub created_ms: u64,
    /// Whether this is the device that sent the request.
    #[prost(bool, tag = "6")]
    pub current: bool,
    /// The node id in the timestamps of the device's changes: 16 hex digits, or empty if unknown.
    #[prost(string, tag = "7")]
    #[serde(default)]
    #[schema(required)]
    pub node_id: String,
    /// The number of changes that the device had not sent at its last contact.
    #[prost(uint64, tag = "8")]
    #[serde(default)]
    #[schema(required)]
    pub unsent_count: u64,
    /// The number of messages that the device has not downloaded yet.
    #[prost(uint64, tag = "9")]
    #[serde(default)]
    #[schema(required)]
    pub pending_download_count: u64,
    /// The id of the device whose token registered this one; revoking that device revokes this one,
    /// too. Empty if this device was registered with the password.
    #[prost(string, tag = "10")]
    #[serde(default)]
    #[schema(required)]
    pub registered_by: String,
}

/// `GET /v1/devices`: the account's devices.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = DeviceList)]
pub struct DeviceList {
    /// The devices in order of registration.
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<DeviceInfo>,
    /// The vault's newest sequence number.
    #[prost(uint64, tag = "2")]
    #[serde(default)]
    #[schema(required)]
    pub cursor: u64,
    /// The fingerprint of the vault's whole message set.
    #[prost(message, optional, tag = "3")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The time of the server's clock, in milliseconds since 1970.
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
    /// Converts the mode for comparison. Returns `None` if the key's id does not have 8 bytes.
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
    /// Converts the fingerprint for comparison. Returns `None` if its digest has not 16 bytes.
    pub fn to_crdt(&self) -> Option<crdt::Fingerprint> {
        let digest = u128::from_be_bytes(<[u8; 16]>::try_from(&self.digest[..]).ok()?);
        Some(crdt::Fingerprint { count: self.count, digest })
    }
}

/// Implements `Debug` without the passwords in requests and the token in a response.
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

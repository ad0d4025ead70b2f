//! Defines the wire types for comparing two sets (`docs/reference/formats/8-reconcile.md`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{WireFingerprint, WireMessage};

/// `POST /v1/sync/reconcile`: the messages that the device has in ranges of time.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileRequest {
    /// The claims in order of time, without overlap.
    #[prost(message, repeated, tag = "1")]
    pub claims: Vec<WireRangeClaim>,
}

/// The messages that the device has in a range of hybrid times: their ids, or their count and
/// digest.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RangeClaim)]
pub struct WireRangeClaim {
    /// The number of hybrid times between the end of the previous claim, or 0, and the start of
    /// this one.
    #[prost(uint64, tag = "1")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub gap: u64,
    /// The number of hybrid times from the start of the range to its end.
    #[prost(uint64, tag = "2")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "ffffffffffffffff")]
    pub length: u64,
    /// The number of messages in the range; 0 without `ids` requests all messages of the range.
    #[prost(uint64, tag = "3")]
    #[serde(default)]
    pub count: u64,
    /// The last 64 bits of the messages' digest.
    #[prost(fixed64, tag = "4")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub digest: u64,
    /// The last 64 bits of each message's hash. If there are any, `count` and `digest` are ignored.
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(default, with = "crate::json::hex64s")]
    #[schema(value_type = Vec<String>)]
    pub ids: Vec<u64>,
}

/// The response to a `ReconcileRequest`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ReconcileResponse {
    /// The differences, one for each claim, in order. There are fewer if the response would become
    /// too large: request the rest again.
    #[prost(message, repeated, tag = "1")]
    pub diffs: Vec<WireRangeDiff>,
    /// The vault's newest sequence number before the comparison.
    #[prost(uint64, tag = "2")]
    pub cursor: u64,
    /// The fingerprint of the whole set before the comparison.
    #[prost(message, optional, tag = "3")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The time of the server's clock, in milliseconds since 1970.
    #[prost(uint64, tag = "4")]
    pub server_time_ms: u64,
    /// The id of the message set that the cursor belongs to; in JSON 16 hex digits. In another set,
    /// cursors start at 0 again.
    #[prost(fixed64, tag = "5")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// The server's response to one claim.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = RangeDiff)]
pub struct WireRangeDiff {
    /// Whether both sides have the same messages; if so, the other fields are empty.
    #[prost(bool, tag = "1")]
    pub equal: bool,
    /// The server's messages in buckets, from the start of the claim, if the claim has a count and
    /// a digest. After the last bucket, the server has none.
    #[prost(message, repeated, tag = "2")]
    pub buckets: Vec<WireRangeBucket>,
    /// The messages that the device lacks, in order of time, if the claim has ids.
    #[prost(message, repeated, tag = "3")]
    pub messages: Vec<WireMessage>,
    /// The ids of the messages that the server lacks, if the claim has ids.
    #[prost(fixed64, repeated, tag = "4")]
    #[serde(with = "crate::json::hex64s")]
    #[schema(value_type = Vec<String>)]
    pub wanted: Vec<u64>,
    /// The length of the examined part of a claim with ids, in hybrid times from its start; 0 if
    /// all of it was examined. Ids in `wanted` count only if their messages are in this part; claim
    /// the rest again.
    #[prost(uint64, tag = "5")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub examined_length: u64,
}

/// A range of the server's messages.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = RangeBucket)]
pub struct WireRangeBucket {
    /// The number of hybrid times from the start of the range to its end.
    #[prost(uint64, tag = "1")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000400000000000")]
    pub length: u64,
    /// The number of messages in the range.
    #[prost(uint64, tag = "2")]
    pub count: u64,
    /// The last 64 bits of the messages' digest.
    #[prost(fixed64, tag = "3")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub digest: u64,
}

//! The wire types of comparing two sets (`docs/reference/formats/8-reconcile.md`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{WireFingerprint, WireMessage};

/// `POST /v1/sync/reconcile`: what the device holds in ranges of time.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileRequest {
    /// In order of time, without overlap.
    #[prost(message, repeated, tag = "1")]
    pub claims: Vec<WireRangeClaim>,
}

/// What the device holds in one range of hybrid times: the ids of its messages, or else their count
/// and digest.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RangeClaim)]
pub struct WireRangeClaim {
    /// Hybrid times between the end of the claim before this one, or 0, and the start of this one.
    #[prost(uint64, tag = "1")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub gap: u64,
    /// Hybrid times from its start to its end.
    #[prost(uint64, tag = "2")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "ffffffffffffffff")]
    pub length: u64,
    /// Messages; 0 with no `ids` asks for everything.
    #[prost(uint64, tag = "3")]
    #[serde(default)]
    pub count: u64,
    /// The last 64 bits of the messages' digest.
    #[prost(fixed64, tag = "4")]
    #[serde(default, with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub digest: u64,
    /// The last 64 bits of each message's hash. If there are any, `count` and `digest` say nothing.
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(default, with = "crate::json::hex64s")]
    #[schema(value_type = Vec<String>)]
    pub ids: Vec<u64>,
}

/// The answer to a `ReconcileRequest`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ReconcileResponse {
    /// One for each claim, in order. Fewer if the answer would become too large: ask again for the
    /// rest.
    #[prost(message, repeated, tag = "1")]
    pub diffs: Vec<WireRangeDiff>,
    /// The vault's newest sequence number, before anything was compared.
    #[prost(uint64, tag = "2")]
    pub cursor: u64,
    /// The whole set, before anything was compared.
    #[prost(message, optional, tag = "3")]
    #[schema(required, nullable = false)]
    pub fingerprint: Option<WireFingerprint>,
    /// The server's clock, milliseconds since 1970.
    #[prost(uint64, tag = "4")]
    pub server_time_ms: u64,
    /// The id of the set that the cursor is of. With another set, cursors begin at 0 again. In JSON
    /// 16 hex digits.
    #[prost(fixed64, tag = "5")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "6d1f0c3a5b7e9d24")]
    pub set_id: u64,
}

/// What the server says to one claim.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = RangeDiff)]
pub struct WireRangeDiff {
    /// Both hold the same: nothing else is said.
    #[prost(bool, tag = "1")]
    pub equal: bool,
    /// To a count and digest: what the server holds, in buckets, from the claim's start on. After
    /// the last bucket it holds nothing.
    #[prost(message, repeated, tag = "2")]
    pub buckets: Vec<WireRangeBucket>,
    /// To ids: what the device lacks, in order of time.
    #[prost(message, repeated, tag = "3")]
    pub messages: Vec<WireMessage>,
    /// To ids: those that the server lacks.
    #[prost(fixed64, repeated, tag = "4")]
    #[serde(with = "crate::json::hex64s")]
    #[schema(value_type = Vec<String>)]
    pub wanted: Vec<u64>,
    /// To ids: the hybrid times from the claim's start on that were examined; 0: all. Of what is
    /// `wanted` only messages within these are lacking; claim the rest again.
    #[prost(uint64, tag = "5")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub examined_length: u64,
}

/// Messages of the server that follow each other in time.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[schema(as = RangeBucket)]
pub struct WireRangeBucket {
    /// Hybrid times from its start to its end.
    #[prost(uint64, tag = "1")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000400000000000")]
    pub length: u64,
    /// Messages.
    #[prost(uint64, tag = "2")]
    pub count: u64,
    /// The last 64 bits of their digest.
    #[prost(fixed64, tag = "3")]
    #[serde(with = "crate::json::hex64")]
    #[schema(value_type = String, example = "0000000000000000")]
    pub digest: u64,
}

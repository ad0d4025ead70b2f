//! Represents binary fields in JSON: timestamps as their text, contents as base64, digests as hex.
//!
//! A timestamp's text that is not canonical passes through as its own bytes, which are never 16, so
//! that the only check of timestamps (`crdt::Timestamp::from_bytes`) rejects it with its code.

/// Converts between 16 bytes and the canonical text of a timestamp.
pub(crate) mod timestamp {
    use bytes::Bytes;
    use crdt::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let timestamp = Timestamp::from_bytes(bytes).map_err(serde::ser::Error::custom)?;
        serializer.collect_str(&timestamp)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.parse::<Timestamp>() {
            Ok(timestamp) => Bytes::copy_from_slice(&timestamp.to_bytes()),
            Err(_) if text.len() == Timestamp::BYTES => Bytes::new(),
            Err(_) => Bytes::from(text),
        })
    }
}

/// Converts between bytes and base64 with padding (RFC 4648 §4).
pub(crate) mod base64 {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
    }
}

/// Converts between 16 bytes and 32 lower-case hex digits.
pub(crate) mod digest {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let digest = <[u8; 16]>::try_from(&bytes[..]).map_err(serde::ser::Error::custom)?;
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(digest)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digest = u128::from_str_radix(&text, 16).map_err(serde::de::Error::custom)?;
        Ok(Bytes::copy_from_slice(&digest.to_be_bytes()))
    }
}

/// Converts between the id of a key and 16 hex digits, or between no bytes and an empty text.
pub(crate) mod key_id {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        serializer.serialize_str(&digits.collect::<String>())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Bytes::new());
        }
        let id = Some(&text).filter(|text| text.len() == 16);
        let id = id
            .and_then(|text| u64::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+')));
        let id = id.ok_or_else(|| serde::de::Error::custom("a key id must have 16 hex digits"))?;
        Ok(Bytes::copy_from_slice(&id.to_be_bytes()))
    }
}

/// Converts between 64 bits and 16 lower-case hex digits, because numbers in JSON end at 2⁵³.
pub(crate) mod hex64 {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:016x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
    }
}

/// Converts lists of integers like [`hex64`].
pub(crate) mod hex64s {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        values: &[u64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| format!("{value:016x}")))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u64>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parse = |text: &String| u64::from_str_radix(text, 16);
        texts.iter().map(parse).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
    }
}

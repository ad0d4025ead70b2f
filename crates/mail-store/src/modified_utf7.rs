//! Names of mailboxes in ASCII: modified UTF-7 (RFC 3501 §5.1.3), which Maildir++ uses, too.
//!
//! Printable ASCII is itself, except `&`, which is `&-`. All else is UTF-16 in base64, with `,`
//! for `/` and without padding, between `&` and `-`.

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::NO_PAD;

const BASE64: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Decodes a name. A name that is not in this form is returned unchanged.
pub(crate) fn decode(name: &str) -> String {
    try_decode(name).unwrap_or_else(|| name.to_owned())
}

fn try_decode(name: &str) -> Option<String> {
    let mut pieces = name.split('&');
    let mut decoded = pieces.next()?.to_owned();
    for piece in pieces {
        let (encoded, plain) = piece.split_once('-')?;
        if encoded.is_empty() {
            decoded.push('&');
        } else {
            let bytes = BASE64.decode(encoded).ok()?;
            let (units, rest) = bytes.as_chunks::<2>();
            let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
            let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
            decoded.push_str(Some(text).filter(|_| rest.is_empty())?.as_str());
        }
        decoded.push_str(plain);
    }
    Some(decoded)
}

/// Encodes a name. Characters for which `is_special` returns true are encoded, too.
pub(crate) fn encode(name: &str, is_special: impl Fn(char) -> bool) -> String {
    let mut encoded = String::new();
    let mut waiting: Vec<u8> = Vec::new();
    let end_run = |encoded: &mut String, waiting: &mut Vec<u8>| {
        if !waiting.is_empty() {
            encoded.extend(["&", &BASE64.encode(&*waiting), "-"]);
            waiting.clear();
        }
    };
    for char in name.chars() {
        if matches!(char, ' '..='~') && !is_special(char) {
            end_run(&mut encoded, &mut waiting);
            encoded.push(char);
            if char == '&' {
                encoded.push('-');
            }
        } else {
            waiting
                .extend(char.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    end_run(&mut encoded, &mut waiting);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_other_programs() {
        // The first three are the examples of RFC 3501 and of a recording of Thunderbird.
        for (name, encoded) in [
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("Projekt & Möll", "Projekt &- M&APY-ll"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("😀", "&2D3eAA-"),
            ("", ""),
        ] {
            assert_eq!(encode(name, |_| false), encoded);
            assert_eq!(decode(encoded), name);
        }
        assert_eq!(encode("v1.2", |char| char == '.'), "v1&AC4-2");
        assert_eq!(decode("v1&AC4-2"), "v1.2");
    }

    #[test]
    fn a_name_that_is_not_in_this_form_stays_as_it_is() {
        for name in ["a & b", "&A-", "&2D0-", "&APw", "ä"] {
            assert_eq!(decode(name), name);
        }
    }
}

//! The header of a message or of one of its parts, parsed by `mail-parser`.
//!
//! Headers come from strangers. A panic of the parser is caught, and the header then counts as
//! empty: the message is stored and can be read in any case.
//!
//! The parser gets only the fields that this module reads. It takes quadratic time for fields with
//! many parameters, so these fields are cut. Bodies are decoded without it: its parser for messages
//! has no limit for nested messages.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::html::html_to_text;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{
    Addr, Address, ContentType, HeaderName, HeaderValue, Message, MessageParser, MimeHeaders,
};

use crate::limits::{CONTENT_FIELD_BYTES_MAX, CONTENT_FIELDS_BYTES_MAX, HEADER_BYTES_MAX};

/// The fields of a header that a listing, a search and the tree of parts need.
pub struct HeaderFields(Option<Message<'static>>);

/// How the body of a part is encoded (RFC 2045 §6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferEncoding {
    /// `7bit`, `8bit`, `binary`, and names that are not known.
    Identity,
    Base64,
    QuotedPrintable,
}

/// The fields that describe the body.
const CONTENT_FIELDS: [&str; 3] =
    ["content-type", "content-disposition", "content-transfer-encoding"];

/// The other fields that are read.
const TEXT_FIELDS: [&str; 5] = ["subject", "from", "to", "cc", "date"];

static PARSER: LazyLock<MessageParser> =
    LazyLock::new(|| MessageParser::new().with_minimal_headers().default_header_ignore());

impl HeaderFields {
    /// Parses a header, with or without the empty line at its end. At most 256 KiB of it are read.
    pub fn parse(header: &[u8]) -> Self {
        let fields = read_fields(&header[..header.len().min(HEADER_BYTES_MAX)]);
        Self(parse_caught(|| PARSER.parse_headers(&fields).map(Message::into_owned)))
    }

    /// Returns the subject, decoded.
    pub fn subject(&self) -> Option<&str> {
        self.text(HeaderName::Subject)
    }

    /// Returns the sender: `Name <address>`, or what of it there is.
    pub fn from(&self) -> Option<String> {
        self.addresses(HeaderName::From)
    }

    /// Returns the recipients in `To`.
    pub fn to(&self) -> Option<String> {
        self.addresses(HeaderName::To)
    }

    /// Returns the recipients in `Cc`.
    pub fn cc(&self) -> Option<String> {
        self.addresses(HeaderName::Cc)
    }

    /// Returns the time in `Date`, in seconds since 1970. `None` if it cannot be read.
    pub fn sent_s(&self) -> Option<i64> {
        let date = self.value(HeaderName::Date)?.as_datetime()?;
        date.is_valid().then(|| date.to_timestamp())
    }

    /// Returns the media type in lower case, such as `text/plain`.
    pub fn media_type(&self) -> String {
        let Some(content_type) = self.content_type() else { return "text/plain".to_owned() };
        let (main, sub) = (content_type.ctype(), content_type.subtype().unwrap_or_default());
        format!("{main}/{sub}").to_ascii_lowercase()
    }

    /// Returns the name of the part's file, if it has one.
    pub fn file_name(&self) -> Option<&str> {
        let message = self.0.as_ref()?;
        message.parts.first().and_then(MimeHeaders::attachment_name)
    }

    /// Whether the part is an attachment: it is marked as one, or has a file name and another
    /// type than text.
    pub fn is_attachment(&self) -> bool {
        let disposition = self.value(HeaderName::ContentDisposition);
        let disposition = disposition.and_then(HeaderValue::as_content_type);
        disposition.is_some_and(ContentType::is_attachment)
            || (self.file_name().is_some() && !self.is_text())
    }

    pub(crate) fn is_text(&self) -> bool {
        self.content_type().is_none_or(|found| found.ctype().eq_ignore_ascii_case("text"))
    }

    /// Returns the boundary between the parts of a multipart.
    pub(crate) fn boundary(&self) -> Option<&str> {
        let content_type = self.content_type()?;
        let is_multipart = content_type.ctype().eq_ignore_ascii_case("multipart");
        let boundary = content_type.attribute("boundary").filter(|_| is_multipart)?.trim_end();
        Some(boundary).filter(|boundary| !boundary.is_empty())
    }

    /// Whether the part is a multipart whose parts are messages unless they have another type.
    pub(crate) fn is_digest(&self) -> bool {
        self.media_type() == "multipart/digest"
    }

    /// Whether the body is a message whose bytes are not encoded.
    pub(crate) fn is_message(&self, is_in_digest: bool) -> bool {
        let is_message = match self.content_type() {
            None => is_in_digest,
            Some(_) => ["message/rfc822", "message/global"].contains(&self.media_type().as_str()),
        };
        is_message && self.transfer_encoding() == TransferEncoding::Identity
    }

    fn transfer_encoding(&self) -> TransferEncoding {
        let name = self.text(HeaderName::ContentTransferEncoding).unwrap_or_default();
        if name.eq_ignore_ascii_case("base64") {
            TransferEncoding::Base64
        } else if name.eq_ignore_ascii_case("quoted-printable") {
            TransferEncoding::QuotedPrintable
        } else {
            TransferEncoding::Identity
        }
    }

    fn content_type(&self) -> Option<&ContentType<'static>> {
        self.value(HeaderName::ContentType)?.as_content_type()
    }

    fn text(&self, name: HeaderName<'static>) -> Option<&str> {
        self.value(name)?.as_text()
    }

    fn addresses(&self, name: HeaderName<'static>) -> Option<String> {
        let addresses: Vec<String> = self.value(name)?.as_address().map(address_texts)?;
        (!addresses.is_empty()).then(|| addresses.join(", "))
    }

    fn value(&self, name: HeaderName<'static>) -> Option<&HeaderValue<'static>> {
        self.0.as_ref()?.header(name)
    }
}

/// Decodes the body of a part that is a text: its transfer encoding, its character set, and HTML.
/// Returns `None` if the part is not a text.
pub(crate) fn decode_text(body: &[u8], header: &HeaderFields) -> Option<String> {
    if !header.is_text() {
        return None;
    }
    parse_caught(|| {
        let decoded = match header.transfer_encoding() {
            TransferEncoding::Identity => None,
            TransferEncoding::Base64 => base64_decode(body),
            TransferEncoding::QuotedPrintable => quoted_printable_decode(body),
        };
        // A body that is not in its encoding is shown undecoded.
        let bytes = decoded.map_or(Cow::Borrowed(body), Cow::Owned);
        let charset = header.content_type().and_then(|found| found.attribute("charset"));
        let text = match charset.and_then(|name| charset_decoder(name.as_bytes())) {
            Some(decode) => decode(&bytes),
            None => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Some(if header.media_type() == "text/html" { html_to_text(&text) } else { text })
    })
}

/// Returns the fields that are read, each cut to its limit, and the empty line that the parser
/// wants.
fn read_fields(header: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut content_room = CONTENT_FIELDS_BYTES_MAX;
    let (mut room, mut is_content) = (0, false);
    for line in header.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii_end();
            let is_any = |names: &[&str]| names.iter().any(|field| is_name(name, field));
            is_content = is_any(&CONTENT_FIELDS);
            room = match is_content {
                true => CONTENT_FIELD_BYTES_MAX.min(content_room),
                false if is_any(&TEXT_FIELDS) => HEADER_BYTES_MAX,
                false => 0,
            };
        }
        let kept = line.len().min(room);
        fields.extend_from_slice(&line[..kept]);
        if 0 < kept && kept < line.len() {
            fields.push(b'\n');
        }
        room -= kept;
        content_room -= if is_content { kept } else { 0 };
    }
    fields.extend_from_slice(b"\r\n\r\n");
    fields
}

fn is_name(name: &[u8], field: &str) -> bool {
    name.eq_ignore_ascii_case(field.as_bytes())
}

fn address_texts(addresses: &Address<'_>) -> Vec<String> {
    let text = |address: &Addr<'_>| match (address.name(), address.address()) {
        (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
        (name, address) => name.or(address).map(str::to_owned),
    };
    addresses.iter().filter_map(text).collect()
}

fn parse_caught<T>(parse: impl FnOnce() -> Option<T>) -> Option<T> {
    // The closure shares nothing that a panic could leave half changed.
    catch_unwind(AssertUnwindSafe(parse)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = HeaderFields::parse(
            b"From: =?utf-8?q?Ada_L=C3=B6v?= <ada@example.org>\r\n\
              To: bob@example.org, Eve <eve@example.org>\r\n\
              Subject: =?iso-8859-1?q?gr=FC=DFe?=\r\n\
              Date: Sun, 29 Nov 2026 04:00:00 +0100\r\n\
              Content-Type: Multipart/Mixed;\r\n boundary=\"a b\"",
        );
        assert_eq!(fields.from().unwrap(), "Ada Löv <ada@example.org>");
        assert_eq!(fields.to().unwrap(), "bob@example.org, Eve <eve@example.org>");
        assert_eq!(fields.subject(), Some("grüße"));
        assert_eq!(fields.sent_s(), Some(1_795_921_200));
        assert_eq!(fields.boundary(), Some("a b"));
    }

    #[test]
    fn text_is_decoded_whatever_its_encoding() {
        for (part, text) in [
            ("\r\nplain\r\n", "plain\r\n"),
            ("Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n", "hello"),
            (
                "Content-Type: text/plain; charset=iso-8859-1\r\n\
                 Content-Transfer-Encoding: quoted-printable\r\n\r\ngr=FC=DFe",
                "grüße",
            ),
            ("Content-Type: text/html\r\n\r\n<p>one <b>two</b></p>", "one two"),
        ] {
            let (header, body) = part.split_once("\r\n\r\n").unwrap_or(("", part));
            let header = HeaderFields::parse(header.as_bytes());
            assert_eq!(decode_text(body.as_bytes(), &header).unwrap().trim(), text.trim());
        }
    }

    #[test]
    fn a_text_is_decoded_as_a_text_whatever_its_body_looks_like() {
        let nested = "Content-Type: message/rfc822\n\n".repeat(100_000);
        for name in ["text/plain", "text/plain; boundary=x", "TEXT/x"] {
            let header = HeaderFields::parse(format!("Content-Type: {name}").as_bytes());
            assert_eq!(decode_text(nested.as_bytes(), &header).unwrap(), nested);
        }
        // The type is beyond what is read of a header.
        let header = "A: b\n".repeat(HEADER_BYTES_MAX) + "Content-Type: message/rfc822\n";
        let header = HeaderFields::parse(header.as_bytes());
        assert_eq!(decode_text(nested.as_bytes(), &header).unwrap(), nested);
    }

    #[test]
    fn a_text_that_is_not_in_its_encoding_stays_as_it_is() {
        for encoding in ["base64", "quoted-printable"] {
            let header = format!("Content-Transfer-Encoding: {encoding}\n");
            let header = HeaderFields::parse(header.as_bytes());
            assert_eq!(decode_text(b"{} \xff = !", &header).unwrap(), "{} \u{fffd} = !");
        }
    }

    #[test]
    fn fields_of_parts_are_cut_and_others_are_whole() {
        let parameters = "; a*1=b".repeat(100_000);
        let recipients = "a@b.c, ".repeat(20_000);
        let header = format!(
            "Received: {parameters}\nContent-Type: text/x{parameters}\n {parameters}\n\
             TO: {recipients}\n\tz@b.c\nSubject : short"
        );
        let read = read_fields(header.as_bytes());
        assert!(read.len() < CONTENT_FIELDS_BYTES_MAX + recipients.len() + 100);
        let fields = HeaderFields::parse(&header.as_bytes()[header.find("Content").unwrap()..]);
        assert_eq!(fields.media_type(), "text/x");
        let fields = HeaderFields::parse(&header.as_bytes()[header.find("TO").unwrap()..]);
        assert_eq!(fields.to().unwrap(), "a@b.c, ".repeat(20_000) + "z@b.c");
        assert_eq!(fields.subject(), Some("short"));

        let repeated = format!("Content-Type: text/x{}\n", "; a=b".repeat(500)).repeat(50);
        assert!(read_fields(repeated.as_bytes()).len() < CONTENT_FIELDS_BYTES_MAX + 10);
    }
}

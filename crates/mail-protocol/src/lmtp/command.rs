//! The grammar of LMTP commands (RFC 5321 §4.1).
//!
//! smtp-proto has a parser of such commands. It is not used because it refuses senders that exist
//! (`a..b@c`, `a@[192.0.2.1]`), so that their mail would be lost, and because it changes addresses:
//! it removes quotes, replaces bytes that are not UTF-8, and takes `<postmaster>` for `<>`. Here an
//! address is any text without control characters, because the mail transfer agent has already
//! checked it, and the caller looks recipients up.

use super::replies;

/// Limit of an address in bytes (RFC 5321 §4.5.3.1.3).
pub const ADDRESS_BYTES_MAX: usize = 256;

/// Limit of the client's name in bytes (RFC 5321 §4.5.3.1.2).
pub(super) const CLIENT_NAME_BYTES_MAX: usize = 255;

/// A number of bytes in SIZE has at most 20 digits (RFC 1870 §6).
const SIZE_DIGITS_MAX: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LmtpCommand<'a> {
    Bdat,
    Data,
    Lhlo(&'a str),
    /// Has the size that the client declared in bytes, or 0.
    Mail {
        sender: &'a str,
        size: usize,
    },
    Noop,
    Quit,
    Rcpt(&'a str),
    Rset,
    Vrfy,
}

impl<'a> LmtpCommand<'a> {
    /// Parses a line without its LF. The error is the reply to it.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let line = line.trim_ascii_end();
        let verb_end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (verb, arguments) = line.split_at(verb_end);
        let arguments = arguments.trim_ascii_start();
        match verb.to_ascii_uppercase().as_slice() {
            b"LHLO" => parse_client_name(arguments),
            b"MAIL" => parse_mail(arguments),
            b"RCPT" => parse_rcpt(arguments),
            b"DATA" | b"QUIT" | b"RSET" if !arguments.is_empty() => Err(replies::BAD_ARGUMENTS),
            b"DATA" => Ok(Self::Data),
            b"QUIT" => Ok(Self::Quit),
            b"RSET" => Ok(Self::Rset),
            b"NOOP" => Ok(Self::Noop),
            b"VRFY" => Ok(Self::Vrfy),
            b"BDAT" => Ok(Self::Bdat),
            b"EHLO" | b"HELO" => Err(replies::LHLO_ONLY),
            b"AUTH" | b"BURL" | b"ETRN" | b"EXPN" | b"HELP" | b"STARTTLS" => {
                Err(replies::NOT_IMPLEMENTED)
            }
            _ => Err(replies::UNKNOWN_COMMAND),
        }
    }
}

fn parse_client_name(arguments: &[u8]) -> Result<LmtpCommand<'_>, &'static str> {
    let name = text(arguments, CLIENT_NAME_BYTES_MAX).filter(|name| !name.is_empty());
    name.map(LmtpCommand::Lhlo).ok_or(replies::BAD_ARGUMENTS)
}

fn parse_mail(arguments: &[u8]) -> Result<LmtpCommand<'_>, &'static str> {
    let (path, parameters) = split_path(arguments, b"FROM:").ok_or(replies::BAD_ARGUMENTS)?;
    let sender = parse_path(path).ok_or(replies::BAD_SENDER)?;
    let parameters = str::from_utf8(parameters).unwrap_or("?");
    let mut size = 0;
    for parameter in parameters.split(' ').filter(|parameter| !parameter.is_empty()) {
        let (keyword, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match (keyword.to_ascii_uppercase().as_str(), value.to_ascii_uppercase().as_str()) {
            ("BODY", "7BIT" | "8BITMIME") | ("SMTPUTF8", "") => {}
            ("SIZE", digits) => size = parse_size(digits).ok_or(replies::BAD_ARGUMENTS)?,
            _ => return Err(replies::UNKNOWN_PARAMETER),
        }
    }
    Ok(LmtpCommand::Mail { sender, size })
}

fn parse_rcpt(arguments: &[u8]) -> Result<LmtpCommand<'_>, &'static str> {
    let (path, parameters) = split_path(arguments, b"TO:").ok_or(replies::BAD_ARGUMENTS)?;
    let address = parse_path(path).filter(|address| !address.is_empty());
    let address = address.ok_or(replies::BAD_RECIPIENT)?;
    if !parameters.is_empty() {
        return Err(replies::UNKNOWN_PARAMETER);
    }
    Ok(LmtpCommand::Rcpt(address))
}

/// Splits `FROM:<path> parameters` into the path and the parameters.
fn split_path<'a>(arguments: &'a [u8], keyword: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (start, rest) = arguments.split_at_checked(keyword.len())?;
    let rest = rest.trim_ascii_start().strip_prefix(b"<")?;
    let (path, rest) = rest.split_at(path_length(rest)?);
    let parameters = rest.strip_prefix(b">")?;
    let is_separate = parameters.is_empty() || parameters.starts_with(b" ");
    (start.eq_ignore_ascii_case(keyword) && is_separate).then_some((path, parameters))
}

/// Returns the position of the `>` that ends a path. One in quotes does not (`<"a>b"@c>`).
fn path_length(path: &[u8]) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    path.iter().position(|byte| {
        let is_literal = is_escaped;
        is_escaped = is_quoted && !is_literal && *byte == b'\\';
        is_quoted ^= !is_literal && *byte == b'"';
        !is_quoted && *byte == b'>'
    })
}

/// Returns the address in a path. A route before it (`@a,@b:user@c`) has no meaning any more
/// (RFC 5321 appendix C).
fn parse_path(path: &[u8]) -> Option<&str> {
    if !path.starts_with(b"@") {
        return text(path, ADDRESS_BYTES_MAX);
    }
    let (_, address) = str::from_utf8(path).ok()?.split_once(':')?;
    text(address.as_bytes(), ADDRESS_BYTES_MAX).filter(|address| !address.is_empty())
}

/// Returns bytes as text, if they are UTF-8 without control characters and not too long.
fn text(bytes: &[u8], bytes_max: usize) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    (text.len() <= bytes_max && !text.contains(char::is_control)).then_some(text)
}

fn parse_size(digits: &str) -> Option<usize> {
    let is_number = (1..=SIZE_DIGITS_MAX).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    // A number that does not fit is above every limit.
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;

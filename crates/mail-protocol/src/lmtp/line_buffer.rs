//! The buffer of an incomplete command line.

use std::mem;

use super::replies;

/// Limit of a command line in bytes, without its LF. RFC 5321 demands 512, and more for extensions.
const LINE_BYTES_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl LineBuffer {
    /// Takes bytes from `input` up to the next LF, and returns the line without LF once it is
    /// complete. A line that is too long is taken, too, and becomes the reply to it.
    pub(super) fn take_line(&mut self, input: &mut &[u8]) -> Option<Result<Vec<u8>, &'static str>> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (part, rest) = input.split_at(end.unwrap_or(input.len()));
        *input = rest.get(1..).unwrap_or_default();
        self.is_too_long |= self.bytes.len() + part.len() > LINE_BYTES_MAX;
        if !self.is_too_long {
            self.bytes.extend_from_slice(part);
        }
        end?;
        let line = mem::take(&mut self.bytes);
        Some(if mem::take(&mut self.is_too_long) { Err(replies::LINE_TOO_LONG) } else { Ok(line) })
    }
}

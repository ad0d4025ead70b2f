//! The stream of `GET /v1/sync/full`, page by page: protobuf messages, each after its length.

use std::io::{BufReader, Read};

use prost::Message;
use protocol::PullResponse;

use crate::error::{Error, Result};

/// A page has about a MiB of contents; more than this is none of ours.
const PAGE_BYTES_MAX: u64 = 64 << 20;

/// Reads page after page, holding one at a time.
pub(crate) struct Pages<R> {
    reader: BufReader<R>,
    /// Nothing is read after an error.
    is_broken: bool,
}

impl<R: Read> Pages<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), is_broken: false }
    }

    /// `None` at the end.
    fn page(&mut self) -> Result<Option<PullResponse>> {
        let Some(length) = self.length()? else { return Ok(None) };
        let mut bytes = Vec::new();
        let mut page = (&mut self.reader).take(length);
        let count = page.read_to_end(&mut bytes).map_err(broken)?;
        if (count as u64) < length {
            return Err(broken("it ended within a page"));
        }
        PullResponse::decode(&bytes[..]).map(Some).map_err(broken)
    }

    /// A varint, or `None` at the end of the stream.
    fn length(&mut self) -> Result<Option<u64>> {
        let mut length = 0;
        for shift in (0..35).step_by(7) {
            let mut byte = [0];
            match self.reader.read(&mut byte).map_err(broken)? {
                0 if shift == 0 => return Ok(None),
                0 => return Err(broken("it ended within a page")),
                _ => length |= u64::from(byte[0] & 0x7f) << shift,
            }
            if byte[0] < 0x80 {
                let fits = length <= PAGE_BYTES_MAX;
                return if fits { Ok(Some(length)) } else { Err(broken("a page is too large")) };
            }
        }
        Err(broken("a page has no length"))
    }
}

fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unreachable(format!("the stream broke off: {}", why.into()))
}

impl<R: Read> Iterator for Pages<R> {
    type Item = Result<PullResponse>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let page = self.page();
        self.is_broken = page.is_err();
        page.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: u64) -> PullResponse {
        PullResponse { cursor, more: true, ..PullResponse::default() }
    }

    fn stream() -> Vec<u8> {
        (1..4).flat_map(|cursor| page(cursor).encode_length_delimited_to_vec()).collect()
    }

    #[test]
    fn pages_come_one_by_one() {
        let pages: Vec<_> = Pages::new(&stream()[..]).map(Result::unwrap).collect();
        assert_eq!(pages, [page(1), page(2), page(3)]);
    }

    #[test]
    fn a_stream_that_is_cut_gives_its_whole_pages_and_an_error() {
        let stream = stream();
        let one = stream.len() / 3;
        for end in (1..stream.len()).filter(|end| end % one != 0) {
            let mut pages = Pages::new(&stream[..end]);
            let whole = (&mut pages).take_while(Result::is_ok).count();
            assert_eq!(whole, end / one, "cut at {end}");
            assert!(pages.next().is_none());
        }
    }

    #[test]
    fn lengths_that_no_page_has_are_refused() {
        for bytes in [&[0xff; 9][..], &[0xff, 0xff, 0xff, 0xff, 0x0f]] {
            assert!(Pages::new(bytes).next().unwrap().is_err());
        }
    }
}

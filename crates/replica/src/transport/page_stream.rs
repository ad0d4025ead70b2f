//! Decodes the stream of `GET /v1/sync/full` into pages: protobuf messages, each after its length.

#[cfg(not(target_family = "wasm"))]
use std::io::Read;

use bytes::{Buf, BytesMut};
use prost::Message;
use protocol::PullResponse;

use super::ANSWER_BYTES_MAX;
use crate::error::{Error, Result};

/// The maximum number of bytes of one read.
#[cfg(not(target_family = "wasm"))]
const CHUNK_BYTES: usize = 64 << 10;

/// A decoder that assembles pages from bytes of the network.
#[derive(Debug, Default)]
pub struct PageDecoder {
    waiting: BytesMut,
}

impl PageDecoder {
    /// Appends the next bytes, split at any place.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Returns the next complete page, if there is one.
    pub fn page(&mut self) -> Result<Option<PullResponse>> {
        let Some((length, prefix)) = self.length()? else { return Ok(None) };
        if self.waiting.len() < prefix + length {
            return Ok(None);
        }
        self.waiting.advance(prefix);
        PullResponse::decode(self.waiting.split_to(length)).map(Some).map_err(broken_stream_error)
    }

    /// Checks at the end of the stream that no page is incomplete.
    pub fn end(&self) -> Result<()> {
        if self.waiting.is_empty() { Ok(()) } else { Err(broken_stream_error("incomplete page")) }
    }

    /// Returns a page's length, and the length of the varint that contains it.
    fn length(&self) -> Result<Option<(usize, usize)>> {
        let mut length = 0;
        for (index, byte) in self.waiting.iter().take(5).enumerate() {
            length |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                let fits = usize::try_from(length).ok().filter(|_| length <= ANSWER_BYTES_MAX);
                let length = fits.ok_or_else(|| broken_stream_error("page too large"))?;
                return Ok(Some((length, index + 1)));
            }
        }
        if self.waiting.len() < 5 {
            Ok(None)
        } else {
            Err(broken_stream_error("page without a length"))
        }
    }
}

fn broken_stream_error(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unreachable(format!("response interrupted: {}", reason.into()))
}

/// A reader of pages that holds one at a time.
#[cfg(not(target_family = "wasm"))]
pub(crate) struct PageStreamReader<R> {
    reader: R,
    decoder: PageDecoder,
    /// Whether an error has occurred, after which nothing is read.
    is_broken: bool,
}

#[cfg(not(target_family = "wasm"))]
impl<R: Read> PageStreamReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, decoder: PageDecoder::default(), is_broken: false }
    }

    /// Reads the next page, or returns `None` at the end.
    fn page(&mut self) -> Result<Option<PullResponse>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            if let Some(page) = self.decoder.page()? {
                return Ok(Some(page));
            }
            let count = self.reader.read(&mut chunk).map_err(broken_stream_error)?;
            if count == 0 {
                return self.decoder.end().map(|()| None);
            }
            self.decoder.push(&chunk[..count]);
        }
    }
}

#[cfg(not(target_family = "wasm"))]
impl<R: Read> Iterator for PageStreamReader<R> {
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
        let pages: Vec<_> = PageStreamReader::new(&stream()[..]).map(Result::unwrap).collect();
        assert_eq!(pages, [page(1), page(2), page(3)]);
    }

    #[test]
    fn a_stream_that_is_cut_gives_its_whole_pages_and_an_error() {
        let stream = stream();
        let one = stream.len() / 3;
        for end in (1..stream.len()).filter(|end| end % one != 0) {
            let mut pages = PageStreamReader::new(&stream[..end]);
            let whole = (&mut pages).take_while(Result::is_ok).count();
            assert_eq!(whole, end / one, "cut at {end}");
            assert!(pages.next().is_none());
        }
    }

    #[test]
    fn lengths_that_no_page_has_are_refused() {
        for bytes in [&[0xff; 9][..], &[0xff, 0xff, 0xff, 0xff, 0x0f]] {
            assert!(PageStreamReader::new(bytes).next().unwrap().is_err());
        }
    }
}

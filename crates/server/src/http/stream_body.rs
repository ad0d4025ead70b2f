//! A response body that is produced while it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc;

/// Creates a body from the parts of a channel. It ends when the channel is closed.
pub fn body_from_channel(receiver: mpsc::Receiver<Result<Bytes, StreamAborted>>) -> Body {
    Body::new(ChannelBody(receiver))
}

struct ChannelBody(mpsc::Receiver<Result<Bytes, StreamAborted>>);

impl hyper::body::Body for ChannelBody {
    type Data = Bytes;
    type Error = StreamAborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamAborted>>> {
        self.0.poll_recv(context).map(|next| next.map(|page| page.map(Frame::data)))
    }
}

/// An error that makes hyper close the connection before the end of the body.
#[derive(Debug, thiserror::Error)]
#[error("the stream was interrupted")]
pub struct StreamAborted;

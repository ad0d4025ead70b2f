//! Reads the unread rest of a body when its request is refused.
//!
//! A client that is refused in the middle of its body still receives the response, because the
//! server keeps reading for a moment (`http/socket.rs`). Through a proxy it may lose the response:
//! proxies written in Go, like Caddy, pass it on and close the client's connection half a second
//! later. So a body from a proxy is read to its end before the response leaves.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Error;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

use crate::admission::body::{BodyLimits, IncomingBody};

/// Receives the body of a request when its reader drops it.
pub(crate) struct UnreadBody(oneshot::Receiver<Body>);

impl UnreadBody {
    /// Splits the body off. Returns `None` if the client waits for a go-ahead before it sends its
    /// body (RFC 9110, 10.1.1).
    pub(crate) fn split_from(request: Request) -> (Request, Option<Self>) {
        if request.headers().contains_key(EXPECT) {
            return (request, None);
        }
        let (back, rest) = oneshot::channel();
        let lend = |body| Body::new(BorrowedBody { body, back: Some(back) });
        (request.map(lend), Some(Self(rest)))
    }

    /// Reads and discards the rest of the body, within limits.
    pub(crate) async fn discard(mut self, limits: BodyLimits) {
        let Ok(body) = self.0.try_recv() else { return };
        let mut body = IncomingBody::new(body, limits);
        while let Ok(Some(_)) = body.next().await {}
    }
}

/// A body that returns to its [`UnreadBody`] when it is dropped.
struct BorrowedBody {
    body: Body,
    back: Option<oneshot::Sender<Body>>,
}

impl HttpBody for BorrowedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for BorrowedBody {
    fn drop(&mut self) {
        if let Some(back) = self.back.take() {
            // The receiver may be gone with its request.
            drop(back.send(std::mem::take(&mut self.body)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::http::stream_body;

    const LIMITS: BodyLimits =
        BodyLimits { bytes_max: 1 << 20, wait_max: Duration::from_secs(30), is_long: false };

    #[tokio::test(start_paused = true)]
    async fn what_a_handler_has_left_is_read_to_its_end() {
        let (sender, receiver) = mpsc::channel(1);
        let (request, rest) =
            UnreadBody::split_from(Request::new(stream_body::body_from_channel(receiver)));
        let sending = tokio::spawn(async move {
            for _ in 0..9 {
                sender.send(Ok(Bytes::from_static(b"a part"))).await.unwrap();
            }
        });
        drop(request);
        rest.unwrap().discard(LIMITS).await;
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_more_is_answered_all_the_same() {
        let (_sender, receiver) = mpsc::channel(1);
        let (request, rest) =
            UnreadBody::split_from(Request::new(stream_body::body_from_channel(receiver)));
        drop(request);
        let begun = Instant::now();
        rest.unwrap().discard(LIMITS).await;
        assert_eq!(begun.elapsed(), LIMITS.wait_max);
    }
}

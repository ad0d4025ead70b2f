//! Bodies of requests and responses that record what their connection waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::Instant;

use super::{ConnectionEntry, OpenConnection};
use crate::admission::client_delay::ClientDelay;

/// A body that calls `observe` with the result of each poll.
struct ObservedBody<B, O> {
    body: B,
    observe: O,
}

/// The result of polling a body.
type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// Wraps a request's body. While it is awaited, the connection waits for its client; a client that
/// sends a byte now and then counts as silent for as long as one that sends none. At all other
/// times the connection waits for the server.
pub(crate) fn request_body<B>(
    body: B,
    connection: Arc<OpenConnection>,
) -> impl Body<Data = Bytes, Error = B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    connection.works();
    let mut delay = ClientDelay::default();
    let observe = move |polled: &PolledFrame<B::Error>| {
        let now = Instant::now();
        match polled {
            Poll::Pending => {
                let waited = delay.wait(now);
                connection.waits_for_client(now.checked_sub(waited).unwrap_or(now));
            }
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
                delay.end_wait(now, data.map_or(0, Bytes::len));
                connection.works();
            }
        }
    };
    ObservedBody { body, observe }
}

/// Wraps a response's body. When it has ended, the connection waits until its client has read it
/// and sends the next request. The entry is that of a proxy's client.
pub(crate) fn response_body<B>(
    body: B,
    connection: Arc<OpenConnection>,
    entry: Option<ConnectionEntry>,
) -> impl Body<Data = Bytes, Error = B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    connection.works();
    let answer = UnfinishedResponse { connection, _entry: entry };
    let observe = move |polled: &PolledFrame<B::Error>| match polled {
        Poll::Pending => answer.connection.waits_for_event(),
        Poll::Ready(_) => answer.connection.works(),
    };
    ObservedBody { body, observe }
}

struct UnfinishedResponse {
    connection: Arc<OpenConnection>,
    _entry: Option<ConnectionEntry>,
}

impl Drop for UnfinishedResponse {
    fn drop(&mut self) {
        self.connection.waits_for_client(Instant::now());
    }
}

impl<B, O> Body for ObservedBody<B, O>
where
    B: Body<Data = Bytes> + Unpin,
    O: FnMut(&PolledFrame<B::Error>) + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<B::Error> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        (self.observe)(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use tokio::sync::mpsc;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::admission::connections::open::ConnectionStage;
    use crate::http::stream_body;

    const SECOND: Duration = Duration::from_secs(1);

    fn silent_for(connection: &OpenConnection) -> Option<Duration> {
        match connection.stage() {
            ConnectionStage::Client(since) => Some(since.elapsed()),
            ConnectionStage::Event(_) | ConnectionStage::Work(_) => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_a_byte_a_second_is_as_silent_as_who_sends_nothing() {
        let connection = Arc::new(OpenConnection::new());
        let (sender, receiver) = mpsc::channel(1);
        let mut body =
            request_body(stream_body::body_from_channel(receiver), Arc::clone(&connection));
        assert_eq!(silent_for(&connection), None);
        let mut silent = Vec::new();
        for bytes in [1, 1, 32 << 10, 1] {
            assert!(timeout(SECOND, body.frame()).await.is_err());
            silent.push((silent_for(&connection).unwrap() + SECOND / 2).as_secs());
            sender.send(Ok(vec![0; bytes].into())).await.unwrap();
            body.frame().await.unwrap().unwrap();
            assert_eq!(silent_for(&connection), None);
            // The server's own time does not count.
            advance(5 * SECOND).await;
        }
        assert_eq!(silent, [1, 2, 3, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_events_while_it_has_none() {
        let connection = Arc::new(OpenConnection::new());
        let (sender, receiver) = mpsc::channel(1);
        let mut body =
            response_body(stream_body::body_from_channel(receiver), Arc::clone(&connection), None);
        assert!(matches!(connection.stage(), ConnectionStage::Work(_)));
        let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context))).await;
        assert!(polled.is_pending());
        let ConnectionStage::Event(since) = connection.stage() else {
            panic!("{:?}", connection.stage())
        };
        advance(SECOND).await;
        assert_eq!(since.elapsed(), SECOND);
        sender.send(Ok(Bytes::from_static(b"event"))).await.unwrap();
        body.frame().await.unwrap().unwrap();
        assert!(matches!(connection.stage(), ConnectionStage::Work(_)));
        drop(body);
        advance(SECOND).await;
        assert_eq!(silent_for(&connection), Some(SECOND));
    }
}

//! One request and its answer, over one connection.

use std::pin::pin;

use chrono::{DateTime, Utc};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::connect::Stream;
use super::response::Head;
use crate::executor::WallClock;

/// Largest head of an answer, in bytes.
const HEAD_MAX_BYTES: usize = 64 * 1024;

/// Takes in what arrives of an answer, in order.
pub(super) trait Sink: Send {
    /// The head is here.
    fn head(&mut self, at: DateTime<Utc>, head: &Head);
    /// A piece of the body.
    fn body(&mut self, at: DateTime<Utc>, bytes: &[u8]);
}

/// How an answer was received.
pub(super) struct ReceivedResponse {
    pub(super) head: Head,
    /// The body was longer than the limit; the rest was not read.
    pub(super) cut: bool,
}

/// Sends the request and receives its answer, `body_limit` bytes of its body at most.
///
/// # Errors
///
/// What the other side did wrong, for people.
///
/// # Cancellation
///
/// Dropping the future closes the connection.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    body_limit: usize,
    clock: &WallClock,
    sink: &mut impl Sink,
) -> Result<ReceivedResponse, String> {
    let broken = |error: hyper::Error| format!("no answer: {}", chain(&error));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_MAX_BYTES)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let answering = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let head = Head::new(parts.status, &parts.headers, clock());
        sink.head(clock(), &head);
        let cut = read(body, body_limit, clock, sink).await?;
        Ok(ReceivedResponse { head, cut })
    };
    let (mut answering, mut connection) = (pin!(answering), pin!(connection));
    let mut open = true;
    loop {
        tokio::select! {
            response = &mut answering => return response,
            // Its error is that of the answer, too.
            _ = &mut connection, if open => open = false,
        }
    }
}

/// Reads a body up to the limit; whether there was more.
async fn read(
    mut body: Incoming,
    limit: usize,
    clock: &WallClock,
    sink: &mut impl Sink,
) -> Result<bool, String> {
    let mut room = limit;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {}", chain(&error)))?;
        let Ok(bytes) = frame.into_data() else { continue };
        sink.body(clock(), &bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            return Ok(true);
        }
        room -= bytes.len();
    }
    Ok(false)
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

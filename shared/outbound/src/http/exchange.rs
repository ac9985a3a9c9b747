//! Sends one request and receives its response, over one connection.

use std::pin::pin;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::HttpResponse;
use super::connect::Stream;
use super::response::ResponseHead;
use crate::error_chain::chain;

/// Largest head of a response, in bytes.
const HEAD_MAX_BYTES: usize = 64 * 1024;

/// Receives the parts of a response as they arrive, in order.
pub trait ResponseSink: Send {
    /// Receives the head.
    fn head(&mut self, head: &ResponseHead);
    /// Receives a piece of the body.
    fn body(&mut self, piece: &[u8]);
}

/// Sends the request and receives its response, with at most `max_body_bytes` bytes of its body.
///
/// # Errors
///
/// The other side's violation of the protocol, described for people.
///
/// # Cancellation
///
/// Dropping the future closes the connection.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    max_body_bytes: usize,
    sink: &mut impl ResponseSink,
) -> Result<HttpResponse, String> {
    let broken = |error: hyper::Error| format!("no answer: {}", chain(&error));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_MAX_BYTES)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let answering = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let head = ResponseHead::new(parts.status, &parts.headers);
        sink.head(&head);
        let is_truncated = read(body, max_body_bytes, sink).await?;
        Ok(HttpResponse { head, is_truncated })
    };
    let (mut answering, mut connection) = (pin!(answering), pin!(connection));
    let mut open = true;
    loop {
        tokio::select! {
            response = &mut answering => return response,
            // The response reports the same error.
            _ = &mut connection, if open => open = false,
        }
    }
}

/// Reads a body up to the limit; returns whether there was more.
async fn read(
    mut body: Incoming,
    limit: usize,
    sink: &mut impl ResponseSink,
) -> Result<bool, String> {
    let mut room = limit;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {}", chain(&error)))?;
        let Ok(bytes) = frame.into_data() else { continue };
        sink.body(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            return Ok(true);
        }
        room -= bytes.len();
    }
    Ok(false)
}

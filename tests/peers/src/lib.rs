//! The servers of tasks: small HTTP and SMTP servers on real sockets, in clear and over TLS, which
//! follow a test's script and report what they saw; a relay that decrypts; and a disk that does not answer.
//!
//! Their certificate is that of `localhost`, signed by an authority that no system knows: a client
//! that must trust it receives [`authority_pem`].

#![expect(clippy::unwrap_used, reason = "a server that cannot do its part fails its test")]

mod disk;
pub mod http;
mod relay;
pub mod smtp;
mod tls;

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

pub use disk::HangingDisk;
pub use relay::TlsRelay;
pub use tls::{authority, authority_pem, certificate_pem, encrypt, key_pem};

/// How long a test waits for an eventual event; CI machines are slow.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits for `future`.
///
/// # Panics
///
/// After [`PATIENCE`].
pub async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap()
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

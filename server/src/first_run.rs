//! What the log says while nobody can log in.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use sexton_operations::error::OperationError;
use tokio_util::sync::CancellationToken;

use crate::access::{Backend, set_up};

/// How often the database is tried until it answers.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Says once how the first account is created, if there is none and nothing but tokens lets people in; ends with the program.
pub(crate) async fn announce(
    backend: Backend,
    address: SocketAddr,
    stopping: CancellationToken,
) -> Result<(), Infallible> {
    if !backend.lets_in_without_account() {
        announce_once(&backend, address, &stopping).await;
    }
    stopping.cancelled().await;
    Ok(())
}

async fn announce_once(backend: &Backend, address: SocketAddr, stopping: &CancellationToken) {
    loop {
        match set_up::open(backend).await {
            Ok(Some(code)) => {
                let base = backend.base_path();
                let place = match address.ip() {
                    // A password takes no plain HTTP over a network.
                    ip if ip.is_loopback() || ip.is_unspecified() => {
                        format!("http://localhost:{}{base}/set-up on this machine", address.port())
                    }
                    _ => format!("{base}/set-up by HTTPS"),
                };
                tracing::warn!(
                    "nobody can log in yet: run `sexton accounts create NAME --role admin`, or open {place} within an hour, with the \
                     code {code}"
                );
                return;
            }
            Ok(None) => return,
            // Another part of the program says that the database is away.
            Err(OperationError::Store(_)) => {}
            Err(error) => tracing::warn!("the first account cannot be set up: {error}"),
        }
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(RETRY_INTERVAL) => {}
        }
    }
}

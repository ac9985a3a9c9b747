//! Free loopback ports for servers that will be restarted on the same port.
//!
//! They are taken from below the range that the kernel gives to outgoing connections. Inside that
//! range, a client that keeps trying to reach a stopped server can be given the server's own port as
//! its source, connect to itself, and so keep the server from coming back.

use std::net::{Ipv4Addr, TcpListener};

use uuid::Uuid;

use super::error::ServersError;

const LOWEST: u16 = 10_240;
/// Linux's default start of the outgoing range, for systems that do not tell.
const DEFAULT_OUTGOING_START: u16 = 32_768;
const MAX_PORT_TRIES: usize = 200;

/// `N` different ports that nothing listened on a moment ago. Another process may take one before the
/// server does; the caller tries again with others then.
pub(super) fn free<const N: usize>() -> Result<[u16; N], ServersError> {
    let end = outgoing_start().max(LOWEST + 1_000);
    let mut held = Vec::with_capacity(N);
    for _ in 0..MAX_PORT_TRIES {
        let candidate = LOWEST + (Uuid::new_v4().as_u128() % u128::from(end - LOWEST)) as u16;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
            held.push((candidate, listener));
        }
        if held.len() == N {
            return Ok(std::array::from_fn(|i| held[i].0));
        }
    }
    Err(ServersError::Program {
        action: format!("find {N} free ports on 127.0.0.1"),
        reason: format!("{MAX_PORT_TRIES} random ports from {LOWEST} to {end} were tried"),
    })
}

fn outgoing_start() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(DEFAULT_OUTGOING_START)
}

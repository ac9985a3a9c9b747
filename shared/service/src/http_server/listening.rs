//! Where clients wait that have connected and are not accepted yet.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Places of that queue; the system may allow fewer (`net.core.somaxconn`). Where it is full a client's system tries again after 1 s, 3 s,
/// 7 s, 15 s and 31 s, so a burst of others that are accepted within moments would hold it up for half a minute.
const QUEUE: u32 = 4_096;

/// Listens on an address; port 0 takes a free one.
///
/// # Errors
///
/// The address is taken, or none of this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind`: connections of a process before, which are closing, do not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn hundreds_connect_before_anybody_is_accepted() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let clients = allowed.trim().parse::<usize>().unwrap().min(600);
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut connected = Vec::new();
        for number in 0..clients {
            let connecting = timeout(Duration::from_secs(30), TcpStream::connect(address)).await;
            connected.push(connecting.unwrap_or_else(|_| panic!("number {number} waits")).unwrap());
        }
    }
}

//! The proxy before a server that echoes everything.

use std::time::Instant;

use tokio::time::timeout;

use super::*;

/// The limit for what happens at once.
const SOON: Duration = Duration::from_secs(10);
/// How long to wait for something that must not happen.
const A_WHILE: Duration = Duration::from_millis(200);

/// Starts a server that echoes everything.
async fn echo() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

async fn client(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap()
}

/// Sends `text` and receives it back.
async fn is_echoed(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    timeout(SOON, stream.read_exact(&mut answer)).await??;
    assert_eq!(answer, text.as_bytes());
    Ok(())
}

async fn is_silent(stream: &mut TcpStream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).await.unwrap();
    timeout(A_WHILE, stream.read_u8()).await.is_err()
}

#[tokio::test]
async fn forwarded_bytes_and_the_end_of_stream_arrive() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    let mut stream = client(&proxy).await;
    is_echoed(&mut stream, "hello").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_cut_resets_old_connections_and_new_ones_until_it_is_over() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    let mut old = client(&proxy).await;
    is_echoed(&mut old, "hello").await.unwrap();
    proxy.cut();
    let reset = timeout(SOON, old.read_u8()).await.unwrap().unwrap_err();
    assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    // The reset may come before the connect has returned, or after.
    if let Ok(mut new) = TcpStream::connect(("127.0.0.1", proxy.port())).await {
        assert!(timeout(SOON, new.read_u8()).await.unwrap().is_err());
    }
    proxy.pass();
    is_echoed(&mut client(&proxy).await, "again").await.unwrap();
}

#[tokio::test]
async fn a_black_hole_delivers_nothing_and_closes_nothing() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    let (mut talks, mut waits) = (client(&proxy).await, client(&proxy).await);
    is_echoed(&mut talks, "hello").await.unwrap();
    is_echoed(&mut waits, "hello").await.unwrap();
    proxy.black_hole();
    assert!(is_silent(&mut talks, "anybody?").await);
    assert!(is_silent(&mut client(&proxy).await, "anybody?").await);
    proxy.pass();
    assert!(is_silent(&mut talks, "and now?").await, "what lost bytes stays silent");
    is_echoed(&mut waits, "still here").await.unwrap();
}

#[tokio::test]
async fn answers_after_a_split_pattern_are_dropped_a_limited_number_of_times() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    proxy.swallow_answers_matching(b"-- mark", 1);
    let mut other = client(&proxy).await;
    is_echoed(&mut other, "-- open").await.unwrap();
    let mut first = client(&proxy).await;
    is_echoed(&mut first, "begin -- m").await.unwrap();
    assert!(is_silent(&mut first, "ark").await);
    is_echoed(&mut client(&proxy).await, "-- mark").await.unwrap();
    proxy.pass();
    assert!(is_silent(&mut first, "and now?").await);
}

#[tokio::test]
async fn a_delay_holds_in_each_direction() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    proxy.delay(Duration::from_millis(100));
    let begun_at = Instant::now();
    is_echoed(&mut client(&proxy).await, "hello").await.unwrap();
    assert!(begun_at.elapsed() >= Duration::from_millis(200), "{:?}", begun_at.elapsed());
}

#[tokio::test]
async fn a_url_leads_through_the_proxy_and_that_of_another_server_is_refused() {
    let proxy = Proxy::before("amqp://guest:guest@127.0.0.1:5672/%2f").await.unwrap();
    let url = proxy.url("amqp://guest:guest@127.0.0.1:5672/%2f?heartbeat=5");
    let expected = format!("amqp://guest:guest@127.0.0.1:{}/%2f?heartbeat=5", proxy.port());
    assert_eq!(url, expected);
    assert_eq!(authority("postgres://db:5432?a=b@c"), Some(("postgres://", "db:5432", "?a=b@c")));
    assert_eq!(authority("no URL"), None);
}

#[tokio::test]
async fn a_lost_request_does_not_arrive_and_its_connection_lives() {
    let proxy = Proxy::to(&echo().await).await.unwrap();
    let mut stream = client(&proxy).await;
    is_echoed(&mut stream, "before").await.unwrap();
    proxy.lose_requests_matching(b"lose");
    assert!(is_silent(&mut stream, "please lose this").await);
    is_echoed(&mut stream, "after").await.unwrap();
    proxy.pass();
    is_echoed(&mut stream, "lose nothing").await.unwrap();
}

//! Tests of requests to real servers on real sockets, with limits and without a worker.

use std::time::Duration;

use rustls::RootCertStore;
use sexton_peers::http::{Act, Server};
use sexton_peers::in_time;

use super::*;

#[derive(Default)]
struct Body(Vec<u8>);

impl ResponseSink for Body {
    fn head(&mut self, _: &ResponseHead) {}

    fn body(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

fn request(url: &str) -> HttpRequest {
    HttpRequest {
        url: Url::parse(url).unwrap(),
        method: Method::POST,
        headers: HeaderMap::new(),
        body: "{\"alert\":\"firing\"}".to_owned(),
        allows_private_addresses: true,
        timeout: Duration::from_mins(2),
        max_body_bytes: 5,
    }
}

#[tokio::test]
async fn a_request_in_clear_reads_no_roots_and_so_much_of_the_response() {
    let mut server = Server::answering("200 OK", "", "received").await;
    let (client, mut body) = (HttpClient::default(), Body::default());
    let sent = client.send(request(&format!("http://{}/hook?a=1", server.address)), &mut body);
    let response = in_time(sent).await.unwrap();
    assert_eq!((body.0.as_slice(), response.is_truncated), (b"recei".as_slice(), true));
    assert!(!client.tls.is_loaded());
    let received = server.request().await;
    assert!(received.head.starts_with("POST /hook?a=1 HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.body, "{\"alert\":\"firing\"}");
    assert_eq!(received.header("user-agent"), Some(AGENT));
    assert_eq!(received.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_server_that_hangs_is_left_at_the_timeout() {
    let mut server = Server::start(vec![Act::Hang]).await;
    let limit = Duration::from_millis(300);
    let request = HttpRequest { timeout: limit, ..request(&format!("http://{}/", server.address)) };
    let ended = in_time(HttpClient::default().send(request, &mut Body::default())).await;
    assert_eq!(ended, Err(HttpError::TimedOut(limit)));
    server.gone().await;
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_allowed() {
    let mut server = Server::answering("200 OK", "", "").await;
    let url = format!("http://{}/", server.address);
    let refused = HttpRequest { allows_private_addresses: false, ..request(&url) };
    let ended = in_time(HttpClient::default().send(refused, &mut Body::default())).await;
    let message = "127.0.0.1 is at 127.0.0.1, a loopback address".to_owned();
    assert_eq!(ended, Err(HttpError::AddressRefused(message)));
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn a_server_proves_its_name_to_a_client_that_trusts_its_authority_alone() {
    let answers = vec![Act::answer("200 OK", "", "hidden"); 2];
    let server = Server::start_encrypted(answers).await;
    let url = format!("https://localhost:{}/", server.address.port());
    let mut roots = RootCertStore::empty();
    roots.add(sexton_peers::authority()).unwrap();
    let trusting = HttpClient::new(TlsClient::with_roots(roots));
    let ended = in_time(trusting.send(request(&url), &mut Body::default())).await;
    assert_eq!(ended.unwrap().head.status, StatusCode::OK);
    let ended = in_time(HttpClient::default().send(request(&url), &mut Body::default())).await;
    let Err(HttpError::Tls(message)) = ended else { panic!("{ended:?}") };
    assert!(message.contains("in SSL_CERT_FILE"), "{message}");
}

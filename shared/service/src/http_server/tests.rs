use std::future::poll_fn;
use std::pin::pin;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::*;

const LIMITS: Limits = Limits {
    connections: 1,
    head: Duration::from_mins(1),
    head_bytes: 8_192,
    stalled: Duration::from_mins(1),
    connection: Duration::from_mins(1),
    last_answer: Duration::from_mins(1),
    keep_alive: false,
};
/// Several looks for a connection that may give way.
const LOOKS: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_request_with_a_body_that_has_come_whole_is_answered_though_all_places_are_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reached, mut seen) = mpsc::unbounded_channel();
    let go = Arc::new(Semaphore::new(0));
    let service = {
        let go = Arc::clone(&go);
        service_fn(move |request: Request<RequestBody>| {
            let (reached, go) = (reached.clone(), Arc::clone(&go));
            async move {
                let mut body = pin!(request.into_body());
                while poll_fn(|context| body.as_mut().poll_frame(context)).await.is_some() {}
                reached.send(()).unwrap();
                go.acquire().await.unwrap().forget();
                Ok::<_, Infallible>(Response::new("done".to_owned()))
            }
        })
    };
    let acceptor = tokio::spawn(accept(listener, service, LIMITS, CancellationToken::new()));
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
    seen.recv().await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    // It is answered as well, or waits for a place: an acceptor that has begun to wait for a connection takes that one.
    let _ = timeout(LOOKS, seen.recv()).await;
    go.add_permits(2);
    for stream in [&mut first, &mut second] {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("done"), "{answer:?}");
    }
    acceptor.abort();
}

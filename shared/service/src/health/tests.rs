//! Tests of the server over a real socket, byte by byte.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::clock;

fn health() -> Health {
    Health {
        readiness: Readiness::new(),
        liveness: Liveness::new(),
        stopping: CancellationToken::new(),
    }
}

async fn start(health: &Health) -> HealthServer {
    HealthServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), health.clone()).await.unwrap()
}

async fn ask(server: &HealthServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn get(server: &HealthServer, path: &str) -> String {
    ask(server, &format!("GET {path} HTTP/1.1\r\nhost: it\r\n\r\n")).await
}

#[tokio::test]
async fn readiness_follows_its_conditions_and_the_shutdown() {
    let health = health();
    let database = health.readiness.condition("database", clock::now());
    let server = start(&health).await;
    assert_ne!(server.address().port(), 0);

    database.not_ready("connection refused", clock::now());
    let answer = get(&server, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains(r#""reason":"connection refused""#), "{answer}");

    database.ready(clock::now());
    let answer = get(&server, "/readyz?verbose").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("content-type: application/json"), "{answer}");

    health.stopping.cancel();
    assert!(get(&server, "/readyz").await.starts_with("HTTP/1.1 503 "));
    assert!(get(&server, "/livez").await.starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_stuck_loop_makes_the_program_not_alive() {
    let health = health();
    let _planner = health.liveness.register("planner", Duration::from_secs(10));
    let alive = |later| {
        answer(&Method::GET, "/livez", &health, Instant::now() + Duration::from_secs(later))
    };
    assert_eq!(alive(9).status(), StatusCode::OK);
    assert_eq!(alive(11).status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(alive(11).body().contains("planner"));
}

#[tokio::test]
async fn other_methods_and_paths_are_refused() {
    let server = start(&health()).await;
    let answer =
        ask(&server, "POST /livez HTTP/1.1\r\nhost: it\r\ncontent-length: 0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("allow: GET"), "{answer}");
    assert!(get(&server, "/").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = start(&health()).await;
    let endless = format!("GET /livez HTTP/1.1\r\nx: {}", "y".repeat(2 * LIMITS.head_bytes));
    let answer = ask(&server, &endless).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn silent_connections_do_not_keep_others_out_for_long() {
    let server = start(&health()).await;
    let mut silent = Vec::new();
    for _ in 0..LIMITS.connections {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let answer = tokio::time::timeout(2 * LIMITS.connection, get(&server, "/livez")).await;
    assert!(answer.expect("answered in time").starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_taken_address_is_named_with_the_way_out() {
    let health = health();
    let server = start(&health).await;
    let error = HealthServer::start(server.address(), health).await.unwrap_err().to_string();
    assert!(error.contains(&server.address().to_string()), "{error}");
    assert!(error.contains("set HEALTH_ADDR"), "{error}");
}

#[tokio::test]
async fn a_dropped_server_gives_its_address_back() {
    let health = health();
    let server = start(&health).await;
    let address = server.address();
    drop(server);
    // The acceptor ends at its next poll; until then it holds the address.
    let again = async {
        loop {
            if let Ok(server) = HealthServer::start(address, health.clone()).await {
                return server;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), again).await.expect("free again");
}

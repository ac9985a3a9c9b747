//! How long `sexton serve` takes to answer, as it counts itself.

use sexton_tests::platform::Platform;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Scrape, run};

/// The series' count of answers; `labels` without the braces.
fn answers(scrape: &Scrape, labels: &str) -> i64 {
    scrape.value(&format!("sexton_http_request_duration_seconds_count{{{labels}}}"))
}

async fn send(address: &str, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn requests_are_counted_by_route_method_and_class_and_clients_make_no_series() {
    let platform = Platform::new().await.unwrap();
    let file = "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"10m\"\n";
    let file = platform.write("checks", file).unwrap();
    run(&platform, &["checks", "apply", "-f", file.to_str().unwrap()]).await;
    let shown = platform.sexton_json(&["checks", "show", "backup"]).await;
    let id = shown["check"]["id"].as_str().unwrap();
    let mut server = platform.start_server("serve", &[]).unwrap();
    server.ready().await;
    let log = server.log();
    let (_, rest) = log.split_once("pings are accepted at http://").unwrap();
    let address = rest.split('/').next().unwrap();
    for (method, path, status) in [
        ("GET", format!("/ping/{id}"), "200"),
        ("GET", format!("/ping/{id}/start"), "200"),
        ("HEAD", format!("/ping/{id}"), "200"),
        ("GET", "/ping/5b8a9f3e-0000-4000-8000-000000000001".to_owned(), "404"),
        ("BREW", format!("/ping/{id}"), "405"),
        ("STIR", format!("/ping/{id}"), "405"),
        ("GET", "/nowhere".to_owned(), "404"),
        ("GET", "/nowhere/else".to_owned(), "404"),
    ] {
        assert_eq!(send(address, method, &path).await, status, "{method} {path}");
    }
    let scrape = Scrape::of(&server).await;
    let ping = r#"route="/ping/{*path}""#;
    for (labels, count) in [
        (format!(r#"{ping},method="GET",status="2xx""#), 2),
        (format!(r#"{ping},method="HEAD",status="2xx""#), 1),
        (format!(r#"{ping},method="GET",status="4xx""#), 1),
        (format!(r#"{ping},method="other",status="4xx""#), 2),
        (r#"route="other",method="GET",status="4xx""#.to_owned(), 2),
    ] {
        assert_eq!(answers(&scrape, &labels), count, "{labels} of {scrape:#?}");
    }
    let series = scrape.0.keys().filter(|series| series.contains("_seconds_count{route="));
    assert_eq!(series.count(), 5, "{scrape:#?}");
    let page = include_str!("../../../docs/reference/metrics.md");
    for name in scrape.names() {
        assert!(page.contains(&format!("| `{name}` | ")), "{name} is not declared");
    }
}

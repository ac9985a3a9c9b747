//! Clients that send and read slowly keep out nobody.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sexton_tests::platform::{Platform, Program};
use sexton_tests::untested::report_untested;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{Fixture, LIMITS, LOCAL_HOST, send_to_address};
use crate::console::REQUIRED;

/// Less than a slow client may take for its head, so that nobody is answered only because it has ended.
const PATIENCE: Duration = Duration::from_secs(8);
/// A generous time for a machine on which thousands connect at once; less than what a client takes whose first five attempts to connect are
/// dropped, as by a full queue.
const BUSY_PATIENCE: Duration = Duration::from_secs(20);
/// More than the longest time limit of a slow client, of its form.
const END: Duration = Duration::from_mins(2);
const CONNECTIONS: usize = 10_000;
/// Connections that are opened between two requests of good clients.
const BATCH: usize = 500;
/// Files that this process needs for other tests, which run beside.
const OTHER_FILES: u64 = 3_000;
/// The most memory of the server that a slow connection may cost.
const CONNECTION_KIB: u64 = 64;
/// What good clients ask for.
const PATHS: [&str; 4] = ["/", "/failed", "/api/v1/jobs", "/api/v1/status"];

/// Requests of a reader: no buffer holds the answers.
const REQUESTS: usize = 200;
/// Good clients ask more often than one may.
const SETTINGS: [(&str, &str); 2] =
    [("SERVE_LOCAL_ROLE", "viewer"), ("SERVE_REQUESTS_PER_MINUTE", "0")];

/// How a client is slow. In the order of the times after which the server ends it, the longest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slow {
    /// It reads nothing of its answers.
    Reader,
    /// It sends half a form.
    Form,
    /// It sends half a head.
    Head,
}

/// `file` is what readers want: one that costs the server next to nothing, so that they are only slow.
async fn open_slow(address: &str, slow: Slow, file: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    let text = match slow {
        Slow::Head => format!("GET / HTTP/1.1\r\n{LOCAL_HOST}\r\nX-Slow: "),
        Slow::Form => {
            let head = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100";
            format!("POST /log-in HTTP/1.1\r\n{LOCAL_HOST}\r\n{head}\r\n\r\nname=")
        }
        Slow::Reader => {
            let request = format!("GET {file} HTTP/1.1\r\n{LOCAL_HOST}\r\n\r\n");
            request.repeat(REQUESTS)
        }
    };
    if slow == Slow::Reader {
        socket.set_recv_buffer_size(4096).ok()?;
    }
    let mut stream = socket.connect(address.parse().ok()?).await.ok()?;
    stream.write_all(text.as_bytes()).await.ok()?;
    Some(stream)
}

/// Each is answered within [`BUSY_PATIENCE`]. Returns how many were, and the longest time.
async fn good_requests(address: &str) -> (usize, Duration) {
    let answers = PATHS.map(async |path| {
        let begun = Instant::now();
        let answer =
            timeout(BUSY_PATIENCE, send_to_address(address, "GET", path, &[LOCAL_HOST], ""));
        let answer = answer.await.unwrap_or_else(|_| panic!("{path} was not answered"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        begun.elapsed()
    });
    let took = join_all(answers).await;
    (took.len(), took.into_iter().max().unwrap())
}

/// The resident memory of a process, in KiB.
fn memory_kib(server: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn open_files(server: &Program) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

/// Raises the limit of this process, and returns how many slow connections fit into it.
fn room() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    CONNECTIONS.min(usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(CONNECTIONS))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_slow_connections_hold_up_nobody_and_end() {
    let connections = room();
    if connections < CONNECTIONS {
        let what = format!("{CONNECTIONS} slow connections: files for {connections} can be open");
        assert!(std::env::var_os(REQUIRED).is_none(), "{what}");
        report_untested(&what);
        return;
    }
    let platform = Platform::new().await.unwrap();
    let mut server = platform.start_server("serve", &SETTINGS).unwrap();
    server.ready().await;
    let log = server.log();
    let address = log.split("pings are accepted at http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap();
    let page = send_to_address(address, "GET", "/", &[LOCAL_HOST], "").await.expect(200);
    let (_, file) = page.as_str().unwrap().split_once("src=\"").unwrap();
    let file = file.split('"').next().unwrap().to_owned();
    let (mut answered, mut longest) = good_requests(address).await;
    let (memory, files) = (memory_kib(&server), open_files(&server));
    let (mut slow, mut most_memory, mut most_files) = (Vec::new(), 0, 0);
    while slow.len() < connections {
        // The first few read nothing, and the last half comes last: its time is the shortest.
        let kind = |number: usize| match number * 200 / connections {
            0 => Slow::Reader,
            1..=99 => Slow::Form,
            _ => Slow::Head,
        };
        let numbers = slow.len()..connections.min(slow.len() + BATCH);
        let batch = numbers.map(|number| open_slow(address, kind(number), &file));
        slow.extend(join_all(batch).await);
        let (count, took) = good_requests(address).await;
        (answered, longest) = (answered + count, longest.max(took));
        most_memory = most_memory.max(memory_kib(&server));
        most_files = most_files.max(open_files(&server));
    }
    let opened = slow.iter().flatten().count();
    println!(
        "MEASURED {opened} of {CONNECTIONS} slow connections, {most_files} files open at once: {answered} good requests \
         answered, the slowest after {} ms; {} KiB of memory more for each",
        longest.as_millis(),
        most_memory.saturating_sub(memory) / connections as u64
    );
    assert!(opened * 10 >= connections * 9, "{opened} of {connections} were opened");
    assert!(most_memory < memory + CONNECTION_KIB * connections as u64, "{most_memory} KiB");
    // They are still there on this side; the server ends them.
    platform
        .eventually("the slow connections end", END, async || {
            good_requests(address).await;
            (open_files(&server) < files + 50).then_some(())
        })
        .await;
    drop(slow);
}

#[tokio::test]
async fn where_all_places_are_taken_the_longest_silent_gives_way() {
    let f = Fixture::new().await;
    let token = f.token("ci", "viewer").await;
    let mut slow = Vec::new();
    // No such connection ends by itself within the test.
    for kind in [Slow::Form, Slow::Head] {
        for _ in 0..LIMITS.connections {
            slow.push(open_slow(&f.address.to_string(), kind, "").await);
        }
    }
    timeout(PATIENCE, f.get(&token, "/me")).await.unwrap().expect(200);
}

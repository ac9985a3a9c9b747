//! The API over HTTP, on a database of its own.

mod access;
mod accounts;
mod alerts;
mod answers;
mod approvals;
mod approved;
mod audit;
mod audited;
mod base_path;
mod bulk_items;
mod bulks;
mod checks;
mod copied;
mod described;
mod description;
mod edits;
mod ended_requests;
mod enqueue_each;
mod events;
mod examinations;
mod failures;
mod idempotency;
mod job_definitions;
mod job_files;
mod jobs;
mod limits;
mod lock_keys;
mod oidc;
mod operations;
mod page_actions;
mod page_forms;
mod platform;
mod previews;
mod problems;
mod proxies;
mod repairs;
mod scopes;
mod sessions;
mod set_up;
mod slow;
mod statements;
mod tiles;
mod tokens;
mod trigger_all;
mod turns;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use sexton_model::access::Role;
use sexton_server::access::{self as server_access, Backend, Stores};
use sexton_server::api::examination::Examiner;
use sexton_server::base_path::below;
use sexton_server::events::Hub;
use sexton_server::{api, pages};
use sexton_service::http_server::{Limits, accept};
use sexton_service::settings::{ConsoleSettings, ServerSettings};
use sexton_store::{Store, StoreOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cli::Console;

const LIMITS: Limits = Limits {
    connections: 100,
    head: Duration::from_secs(10),
    head_bytes: 16 * 1024,
    stalled: Duration::from_secs(30),
    connection: Duration::from_mins(10),
    last_answer: Duration::from_mins(1),
    keep_alive: true,
};

/// The one name by which people log in without HTTPS.
const LOCAL_HOST: &str = "Host: localhost";

fn log_in_body(name: &str, password: &str) -> String {
    serde_json::json!({"name": name, "password": password}).to_string()
}

/// A server, and the command line on the same database.
pub(crate) struct Fixture {
    pub(crate) console: Arc<Console>,
    backend: Backend,
    address: SocketAddr,
    _stop: DropGuard,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The header by which a browser sends the cookie of this answer.
    #[track_caller]
    pub(crate) fn cookie(&self) -> String {
        let set = self.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {}", self.head));
        format!("Cookie: {}", set.split(';').next().unwrap())
    }

    fn has(&self, header: &str) -> bool {
        self.head.to_lowercase().lines().any(|line| line == header)
    }
}

impl Fixture {
    /// Serves on a database with a few jobs. Requests need a token.
    pub(crate) async fn new() -> Self {
        Self::with_local_role(None).await
    }

    pub(crate) async fn with_local_role(local_role: Option<Role>) -> Self {
        Self::with(|backend| backend.with_local_role(local_role)).await
    }

    /// Serves on a database without any job.
    pub(crate) async fn without_jobs(local_role: Role) -> Self {
        let console = Arc::new(Console::new().await);
        Self::serve(console, |backend| backend.with_local_role(Some(local_role))).await
    }

    /// Opens the set-up of the first account.
    pub(crate) async fn open_set_up(&self) {
        server_access::set_up::open(&self.backend).await.unwrap().expect("there is no account yet");
    }

    /// Serves below a path.
    pub(crate) async fn below(base_path: &str) -> Self {
        Self::with(|backend| backend.under(base_path)).await
    }

    /// Serves with what `change` sets.
    async fn with(change: impl FnOnce(Backend) -> Backend) -> Self {
        Self::serve(Arc::new(Console::with_jobs().await), change).await
    }

    /// Serves on the database of another server.
    async fn beside(other: &Self, change: impl FnOnce(Backend) -> Backend) -> Self {
        Self::serve(Arc::clone(&other.console), change).await
    }

    /// As [`Self::with`], for what depends on the address.
    async fn with_address(change: impl FnOnce(Backend, SocketAddr) -> Backend) -> Self {
        Self::serve_at(Arc::new(Console::with_jobs().await), change).await
    }

    async fn serve(console: Arc<Console>, change: impl FnOnce(Backend) -> Backend) -> Self {
        Self::serve_at(console, |backend, _| change(backend)).await
    }

    async fn serve_at(
        console: Arc<Console>,
        change: impl FnOnce(Backend, SocketAddr) -> Backend,
    ) -> Self {
        let options = StoreOptions::new(console.url(), "api");
        // As many connections as a server has.
        let stores = Stores::open(&options).unwrap();
        let short = StoreOptions { read_timeout: Some(Duration::from_secs(2)), ..options };
        let polled = Store::open(&short).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let backend = change(Backend::new(stores).on("host"), address);
        let stop = CancellationToken::new();
        let variables = [("DATABASE_URL".to_owned(), console.url().to_owned())];
        let settings = ServerSettings::from_env(variables.clone()).unwrap();
        let backend = backend.showing(&settings.effective);
        let examiner = Examiner::new(ConsoleSettings::from_env(variables).unwrap(), "host");
        let hub = Hub::new(stop.clone());
        tokio::spawn(hub.clone().run(polled));
        let pages = pages::routes(backend.clone(), hub, examiner.clone());
        let router = api::routes_with(backend.clone(), examiner).merge(pages);
        let router = below(backend.base_path(), router);
        let service = TowerToHyperService::new(router);
        tokio::spawn(accept(listener, service, LIMITS, stop.clone()));
        Self { console, backend, address, _stop: stop.drop_guard() }
    }

    /// The console's address.
    pub(crate) fn site(&self) -> String {
        format!("http://{}{}", self.address, self.backend.base_path())
    }

    /// Creates a token with the command line, and returns its text.
    pub(crate) async fn token(&self, name: &str, role: &str) -> String {
        let created = self.console.json(&["tokens", "create", name, "--role", role]).await;
        created["token"].as_str().unwrap().to_owned()
    }

    /// Sends a request with these headers, each a line.
    async fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        self.send_to(method, &format!("/api/v1{path}"), headers, body).await
    }

    /// Sends a request, and compares an answer of the API with its description.
    pub(crate) async fn send_to(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let answer = send_to_address(&self.address.to_string(), method, path, headers, body).await;
        let base_path = self.backend.base_path();
        described::check(method, path.strip_prefix(&*base_path).unwrap_or(path), &answer);
        answer
    }

    /// Sends a request with a token, and JSON unless `body` is empty.
    pub(crate) async fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(token, (method, path), &[], body).await
    }

    /// As [`Self::ask`], with further headers.
    async fn ask_with(
        &self,
        token: &str,
        (method, path): (&str, &str),
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let authorization = format!("Authorization: Bearer {token}");
        let mut all = vec!["Host: sexton.example.com", &authorization];
        if !body.is_empty() {
            all.push("Content-Type: application/json");
        }
        all.extend(headers);
        self.send(method, path, &all, body).await
    }

    /// Creates an account with the command line, and returns its password.
    pub(crate) async fn account(&self, name: &str, role: &str) -> String {
        let create = ["accounts", "create", name, "--role", role, "--generate"];
        self.console.json(&create).await["password"].as_str().unwrap().to_owned()
    }

    /// Logs in, as a program on this machine would.
    pub(crate) async fn log_in(&self, name: &str, password: &str) -> Answer {
        let headers = [LOCAL_HOST, "Content-Type: application/json"];
        self.send("POST", "/session", &headers, &log_in_body(name, password)).await
    }

    /// Creates an account, logs in with it, and returns the header with the session's cookie.
    async fn session(&self, name: &str, role: &str) -> String {
        let password = self.account(name, role).await;
        let answer = self.log_in(name, &password).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
        answer.cookie()
    }

    /// Sends a request as a page of this server does, with a session.
    async fn visit(&self, cookie: &str, method: &str, path: &str, body: &str) -> Answer {
        let json = "Content-Type: application/json";
        let headers = [LOCAL_HOST, cookie, "Sec-Fetch-Site: same-origin", json];
        self.send(method, path, &headers[..if body.is_empty() { 3 } else { 4 }], body).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(token, "GET", path, "").await
    }
}

/// Sends a request with these headers, each a line.
async fn send_to_address(
    address: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    send_over(stream, method, path, headers, body).await
}

/// As [`send_to_address`], over a connection to the server.
pub(crate) async fn send_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    let mut head = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
    head.extend(headers.iter().map(|&header| header.to_owned()));
    if !body.is_empty() {
        head.push(format!("Content-Length: {}", body.len()));
    }
    let request = format!("{}\r\n\r\n{body}", head.join("\r\n"));
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = match body {
        "" => Value::Null,
        text if text.starts_with('<') || !is_json(head) => Value::String(text.to_owned()),
        body => serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")),
    };
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.replace("\r\n", "\n"),
        body,
    }
}

/// Whether the head of an answer announces one document of JSON, as it does unless it names another type.
fn is_json(head: &str) -> bool {
    !["application/x-ndjson", "application/octet-stream"].iter().any(|it| head.contains(it))
}

/// Waits until the condition holds.
async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

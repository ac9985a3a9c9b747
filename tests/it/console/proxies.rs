//! A person works behind Caddy and nginx, which have TLS and the configurations that docs/operations/console.md shows.
//!
//! Traefik is in none of Debian's packages, so its configuration is not run.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use sexton_peers::in_time;
use sexton_tests::platform::{Platform, Program};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::REQUIRED;
use super::play::site;
use crate::api::{Answer, send_over};
use crate::docs::{blocks, text};
use crate::process::{FINAL_TIMEOUT, by_hand};

const PAGE: &str = "docs/operations/console.md";
/// The server and the site in the configurations of the page.
const SERVER: &str = "127.0.0.1:8420";
const SITE: &str = "sexton.example.com";
/// The path below which the server is, in one of the tests.
const BASE: &str = "/sexton";

/// For Debian's packages.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(8);
/// For a change to reach an open page: long for a slow machine, and shorter than the life of a stream, at whose end a proxy that
/// holds back events would send them.
const STREAM_TIMEOUT: Duration = Duration::from_mins(1);

const JOB: &str = "shop.mail";
const JSON: &str = "Content-Type: application/json";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
/// What a client sends to pass for another one.
const FORGED: [&str; 2] = ["X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: http"];
/// An address of this machine from which no proxy connects to the server.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The address from which the proxies connect, too: what a client at it says in `X-Forwarded-For` would count if they passed it on.
const TRUSTED: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Caddy,
    Nginx,
}

/// What a proxy does with the path of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passing {
    /// The server has the whole host.
    Host,
    /// The server is below a path, which the proxy passes on.
    PathKept,
    /// The server is below a path, which the proxy removes.
    PathRemoved,
}

/// Returns the files of Caddy and nginx; `None`, with a report, where they cannot be fetched.
async fn programs() -> Option<[(Kind, PathBuf); 2]> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/proxies.sh");
    let running = Command::new("sh").arg(script).stdin(Stdio::null()).kill_on_drop(true).output();
    let done = timeout(INSTALL_TIMEOUT, running).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.code() == Some(77) && std::env::var_os(REQUIRED).is_none() {
        sexton_tests::untested::report_untested(&format!("the console behind proxies: {printed}"));
        return None;
    }
    assert!(done.status.success(), "{printed}{}", String::from_utf8_lossy(&done.stderr));
    let (caddy, nginx) = printed.trim().split_once('\n').expect("a program a line");
    Some([(Kind::Caddy, caddy.into()), (Kind::Nginx, nginx.into())])
}

/// Returns the configuration of the page that begins with this comment.
fn documented(comment: &str) -> String {
    let page = text(PAGE);
    let (_, after) = page.split_once("\n## Behind a proxy\n").expect("a section about proxies");
    let section = after.split("\n## ").next().unwrap();
    let found = blocks(section, "text").into_iter().find(|it| it.lines().next() == Some(comment));
    found.unwrap_or_else(|| panic!("{PAGE} has no configuration {comment}"))
}

/// Replaces what is in a configuration once.
#[track_caller]
fn replaced(configuration: &str, old: &str, new: &str) -> String {
    assert_eq!(configuration.matches(old).count(), 1, "{old} in {configuration}");
    configuration.replace(old, new)
}

/// Returns Caddy's configuration: the page's, with a port and a certificate of the test.
fn caddy_file(passing: Passing, server: &str, port: u16, folder: &Path) -> String {
    let folder = folder.display();
    let configuration = replaced(
        &documented("# Caddy"),
        &format!("{SITE} {{"),
        &format!("localhost:{port} {{\n    tls \"{folder}/certificate.pem\" \"{folder}/key.pem\""),
    );
    let forward = format!("reverse_proxy {server}");
    let forward = match passing {
        Passing::Host => forward,
        Passing::PathKept => format!("handle {BASE}* {{\n{forward}\n}}"),
        Passing::PathRemoved => format!("handle_path {BASE}* {{\n{forward}\n}}"),
    };
    let configuration = replaced(&configuration, &format!("reverse_proxy {SERVER}"), &forward);
    // No other port, and no address but this machine's.
    format!(
        "{{\n    admin off\n    auto_https disable_redirects\n    default_bind 127.0.0.1\n}}\n\
         {configuration}\n"
    )
}

/// Returns nginx's configuration: the page's, in a server with a port and a certificate of the test, and one process that writes
/// nowhere but into the folder.
fn nginx_file(passing: Passing, server: &str, port: u16, folder: &Path) -> String {
    let configuration = documented("# nginx");
    let configuration = match passing {
        Passing::Host => configuration,
        Passing::PathKept | Passing::PathRemoved => {
            replaced(&configuration, "location / {", &format!("location {BASE}/ {{"))
        }
    };
    let slash = if passing == Passing::PathRemoved { "/" } else { "" };
    let configuration = replaced(
        &configuration,
        &format!("proxy_pass http://{SERVER};"),
        &format!("proxy_pass http://{server}{slash};"),
    );
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folder = folder.display();
    let temporary = kinds.map(|kind| format!("{kind}_temp_path \"{folder}/{kind}\";\n")).concat();
    format!(
        "daemon off;\nmaster_process off;\nerror_log stderr;\npid \"{folder}/pid\";\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}server {{\n\
         listen 127.0.0.1:{port} ssl;\nserver_name localhost;\n\
         ssl_certificate \"{folder}/certificate.pem\";\nssl_certificate_key \"{folder}/key.pem\";\n\
         {configuration}\n}}\n}}\n"
    )
}

/// A proxy before a server. It is killed with this value, and with its platform, in whose folder it runs.
struct TlsProxy {
    _process: Child,
    port: u16,
    /// The path below which the server is.
    base: &'static str,
    name: String,
}

impl TlsProxy {
    async fn start(
        platform: &Platform,
        (kind, program): (Kind, &Path),
        passing: Passing,
        server: &Program,
    ) -> Self {
        let base = if passing == Passing::Host { "" } else { BASE };
        let site = site(server);
        let server = site.trim_start_matches("http://").split('/').next().unwrap();
        // Found free, and taken by the proxy right after.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (port, name) = (free.port(), format!("{kind:?} {passing:?}"));
        let folder = platform.folder().join(format!("proxy-{port}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("certificate.pem"), sexton_peers::certificate_pem()).unwrap();
        std::fs::write(folder.join("key.pem"), sexton_peers::key_pem()).unwrap();
        let (file, log) = (folder.join("configuration"), folder.join("log"));
        let mut command = Command::new(program);
        let configuration = match kind {
            Kind::Caddy => {
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
                caddy_file(passing, server, port, &folder)
            }
            Kind::Nginx => {
                command.args(["-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(&file);
                nginx_file(passing, server, port, &folder)
            }
        };
        std::fs::write(&file, configuration).unwrap();
        // Caddy keeps what it knows of certificates at home.
        command.env_clear().env("HOME", &folder).current_dir(platform.folder());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let listens = async || {
            let ended = process.try_wait().unwrap();
            let log = std::fs::read_to_string(&log).unwrap();
            assert!(ended.is_none(), "{name} has ended: {log}");
            TcpStream::connect(free).await.ok().map(drop)
        };
        platform.eventually("the proxy listens", FINAL_TIMEOUT, listens).await;
        Self { _process: process, port, base, name }
    }

    /// Sends a request below the path, as a page does, with what a forger adds.
    async fn send(
        &self,
        from: Ipv4Addr,
        (method, path): (&str, &str),
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let host = format!("Host: localhost:{}", self.port);
        let head = [&*host, "Sec-Fetch-Site: same-origin"];
        let all = [&head[..], &FORGED[..], headers].concat();
        let path = format!("{}{path}", self.base);
        let answer = async {
            let stream = connect(from, self.port).await;
            send_over(stream, method, &path, &all, body).await
        };
        in_time(answer).await
    }
}

/// Connects to a port of this machine from one of its addresses, with TLS.
async fn connect(from: Ipv4Addr, port: u16) -> impl AsyncRead + AsyncWrite + Unpin {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    sexton_peers::encrypt(socket.connect(proxy).await.unwrap()).await
}

/// Logs in, looks, acts, follows and sends much.
async fn work(platform: &Platform, proxy: &TlsProxy, password: &str) {
    let name = &proxy.name;
    let form = format!("name=ann&password={password}");
    let logged_in = proxy.send(ELSEWHERE, ("POST", "/log-in"), &[FORM], &form).await;
    assert_eq!(logged_in.status, 303, "{name}: {}", logged_in.body);
    assert_eq!(logged_in.header("location"), Some(&*format!("{}/", proxy.base)), "{name}");
    let set = logged_in.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-sexton_session=") && set.ends_with("; Secure"), "{set}");
    let cookie = logged_in.cookie();

    assert_eq!(proxy.send(ELSEWHERE, ("GET", "/failed"), &[], "").await.status, 303, "{name}");
    let page = proxy.send(ELSEWHERE, ("GET", "/failed"), &[&cookie], "").await.expect(200);
    let html = page.as_str().unwrap();
    assert!(html.contains("account ann"), "{name}: {html}");
    let script = html.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let script = script.strip_prefix(proxy.base).expect("an address below the path");
    proxy.send(ELSEWHERE, ("HEAD", script), &[], "").await.expect(200);
    if !proxy.base.is_empty() {
        let root = proxy.send(ELSEWHERE, ("GET", ""), &[&cookie], "").await;
        let leads = match root.header("location") {
            Some(location) => location == format!("https://localhost:{}{BASE}/", proxy.port),
            None => root.status == 200,
        };
        assert!(leads, "{name}: {}", root.body);
    }

    let trigger = format!("/api/v1/jobs/{JOB}/trigger");
    for from in [ELSEWHERE, TRUSTED] {
        proxy.send(from, ("POST", &trigger), &[&cookie, JSON], "{}").await.expect(200);
        let audit = platform.sexton_json(&["audit", "list", "--job", JOB]).await;
        let row = &audit["items"][0];
        assert_eq!(row["actor"], "account ann", "{name}");
        assert_eq!(row["from_where"], format!("console {from}"), "{name}");
    }

    let mut stream = connect(ELSEWHERE, proxy.port).await;
    let head = format!(
        "GET {}/events?topics=actions HTTP/1.1\r\nHost: localhost:{}\r\n{cookie}\r\n\r\n",
        proxy.base, proxy.port
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut received = Vec::new();
    read_changes(&mut stream, &mut received, 1).await;
    // One sign may still be of the triggers above. Not the third.
    for signs in [2, 3] {
        platform.sexton_json(&["jobs", "trigger", JOB]).await;
        read_changes(&mut stream, &mut received, signs).await;
    }

    // 2 MB, beyond what proxies accept by themselves and within what the server does.
    let file = "# a comment of a job\n".repeat(100_000) + &by_hand("shop.long", "work", "");
    let body = json!({"text": file, "file": "long.toml", "dry_run": true}).to_string();
    let apply = ("POST", "/api/v1/jobs:apply");
    let applied = proxy.send(ELSEWHERE, apply, &[&cookie, JSON], &body).await.expect(200);
    assert_eq!(applied["created"], json!(["shop.long"]), "{name}");
}

/// Reads a stream until it has brought so many changes.
async fn read_changes(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
    wanted: usize,
) {
    let reading = async {
        while String::from_utf8_lossy(received).matches("event: changed").count() < wanted {
            let read = stream.read_buf(received).await.unwrap();
            assert!(read > 0, "the stream ended: {}", String::from_utf8_lossy(received));
        }
    };
    timeout(STREAM_TIMEOUT, reading).await.expect("the proxy passes a change on");
}

/// Has a person work behind each proxy, before a server with these settings.
async fn work_behind_each(more: &[(&str, &str)], passings: &[Passing]) {
    let Some(programs) = programs().await else { return };
    let platform = Platform::new().await.unwrap();
    platform.apply(&by_hand(JOB, "work", "")).await.unwrap();
    let create = ["accounts", "create", "ann", "--role", "editor", "--generate"];
    let created = platform.sexton_json(&create).await;
    let password = created["password"].as_str().unwrap();
    let settings = [&[("SERVE_TRUSTED_PROXIES", "127.0.0.1")], more].concat();
    let mut server = platform.start_server("console", &settings).unwrap();
    server.ready().await;
    for (kind, program) in &programs {
        for &passing in passings {
            let proxy =
                TlsProxy::start(&platform, (*kind, program.as_path()), passing, &server).await;
            work(&platform, &proxy, password).await;
        }
    }
}

#[tokio::test]
async fn a_person_works_behind_each_proxy_of_the_page() {
    work_behind_each(&[], &[Passing::Host]).await;
}

#[tokio::test]
async fn a_person_works_below_a_path_that_each_proxy_passes_on_or_removes() {
    let below = [("SEXTON_BASE_PATH", BASE)];
    work_behind_each(&below, &[Passing::PathKept, Passing::PathRemoved]).await;
}

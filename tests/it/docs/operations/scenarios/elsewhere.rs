//! What stands beside the platform: receivers of messages, watchers, and foreign jobs that ping.

use sexton_scheduler::alerts::platform_monitors::PlatformMonitors;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_service::settings::ConsoleSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{FINAL_TIMEOUT, Platform, Scene};

/// Where nobody listens.
const NOWHERE: u16 = 1;

impl Scene {
    /// Writes `alerts.toml`, whose one channel leads to where nobody listens, and `corrected.toml`, whose leads to a receiver.
    pub(super) async fn receiver(&self) {
        for (name, port) in [("alerts.toml", NOWHERE), ("corrected.toml", accept_all().await)] {
            let channel = format!(
                "[[channel]]\nname = \"ops\"\nwebhook = {{ url = \"http://127.0.0.1:{port}/\", allow_private = true }}\n"
            );
            self.file(name, &format!("{channel}[[route]]\nchannels = [\"ops\"]\n"));
        }
    }

    /// Applies a job whose heartbeats go to where nobody listens, and writes `corrected.toml`, in which they go to a watcher.
    pub(super) async fn watcher(&self, name_and_fields: &str) {
        let (name, fields) = name_and_fields.split_once(' ').unwrap();
        let job = |port: u16| {
            format!(
                "[[job]]\nname = \"{name}\"\n{fields}\nheartbeat = {{ url = \"http://127.0.0.1:{port}/5f8a\", allow_private = true }}\n"
            )
        };
        self.platform.apply(&job(NOWHERE)).await.unwrap();
        self.file("corrected.toml", &job(accept_all().await));
    }

    /// Starts `sexton serve`, which accepts pings at the variable `PINGS`.
    pub(super) async fn server(&mut self, name: &str) {
        let free = [("SERVE_ADDR", "127.0.0.1:0")];
        let mut server = Platform::start_server(&self.platform, name, &free).unwrap();
        server.ready().await;
        let log = server.log();
        let (_, address) = log.split_once("pings are accepted at ").unwrap();
        let (address, _) = address.split_once("/ping/").unwrap();
        self.variables.insert("PINGS".to_owned(), format!("{address}/ping"));
        self.programs.insert(name.to_owned(), server);
    }

    /// Applies a check; `ID` is its id.
    pub(super) async fn check(&mut self, name_and_fields: &str) {
        let (name, fields) = name_and_fields.split_once(' ').unwrap();
        let check = format!("[[check]]\nname = \"{name}\"\n{}\n", fields.replace("; ", "\n"));
        let file = self.platform.write("checks", &check).unwrap();
        let applied =
            self.platform.sexton(&["checks", "apply", "-f", file.to_str().unwrap()]).await;
        assert!(applied.status.success(), "{applied}");
        let shown = self.platform.sexton_json(&["checks", "show", name]).await;
        let id = shown["check"]["id"].as_str().unwrap();
        self.variables.insert("ID".to_owned(), id.to_owned());
    }

    /// Judges the platform, each judgement a minute after the one before, until a query counts one or more.
    pub(super) async fn judge(&self, query: &str) {
        let variables = [
            ("DATABASE_URL", self.platform.database_url()),
            ("AMQP_URL", self.platform.amqp_url()),
            ("SEXTON_NAMESPACE", self.platform.namespace().as_str()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = ConsoleSettings::from_env(variables).unwrap();
        let store = self.platform.store();
        let monitors = PlatformMonitors::new(store.clone(), settings);
        let judged = async || {
            monitors.run_once(None).await.unwrap();
            // A scheduler of the platform judges as well, and then this round does nothing.
            let minute = "UPDATE sexton.platform_findings SET first_seen = first_seen - interval '1 minute', \
                          last_seen = last_seen - interval '1 minute'";
            sqlx::query(minute).execute(store.pool()).await.unwrap();
            (self.count(query).await > 0).then_some(())
        };
        self.platform.eventually(query, FINAL_TIMEOUT, judged).await;
    }
}

/// Accepts whatever is sent, and returns the port.
async fn accept_all() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Requests are small: their headers come at once, and what follows them is not needed.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4_096]).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
        }
    });
    port
}

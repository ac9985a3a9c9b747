//! Notifications from their row to the receiver.
//!
//! Method: rows of incidents and notifications, a real server of the test as the receiver, one round of the sender at a chosen
//! instant, then a look at what the server saw and at the rows. Nothing waits for time: the instants are the test's.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod applying;
mod channels;
mod dead_man;
mod digests;
mod heartbeats;
mod kinds;
mod order;
mod retries;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sexton_outbound::channel::send::Sender;
use sexton_outbound::secret::SecretSource;
use sexton_peers::http::Server;
use sexton_scheduler::alerts::delivery::{DeliveryReport, NotificationSender};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::id_at;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The signing secret of webhooks.
const HOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A platform's database.
struct Fixture {
    db: TestDatabase,
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn environment() -> SecretSource {
    let variables = [
        ("HOOK", HOOK_SECRET),
        ("PD", "routing-key"),
        ("AM", "Bearer hunter2"),
        ("MAIL", "hunter2"),
    ];
    SecretSource::new(variables.into_iter().map(|(name, value)| (name.into(), value.into())))
}

impl Fixture {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    async fn channel(&self, name: &str, kind: &str, config: Value) {
        sqlx::query(
            "INSERT INTO sexton.channels (name, kind, config, updated_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(name)
        .bind(kind)
        .bind(config)
        .bind(at(0))
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    /// A webhook to this server.
    async fn webhook(&self, name: &str, server: &Server) {
        let url = format!("http://{}/hook", server.address);
        let config = json!({"url": url, "secret": {"env": "HOOK"}, "allow_private": true});
        self.channel(name, "webhook", config).await;
    }

    /// An open incident of a job.
    async fn incident(&self, name: &str) -> Uuid {
        let id = id_at(at(0));
        sqlx::query(
            "INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, labels, detail, state, opened_at,
                 changed_at)
             VALUES ($1, 'job', $2, $2, 'failed', 'high', '{\"team\": \"billing\"}', 'exit status 1', 'open', $3, $3)",
        )
        .bind(id)
        .bind(name)
        .bind(at(0))
        .execute(self.db.pool())
        .await
        .unwrap();
        id
    }

    /// A notification that is due when it is written.
    async fn notification(&self, incident: Uuid, channel: &str, kind: &str, seconds: i64) -> Uuid {
        let id = id_at(at(seconds));
        sqlx::query(
            "INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
             VALUES ($1, $2, $3, $4, 'exit status 1', $5, $5)",
        )
        .bind(id)
        .bind(incident)
        .bind(channel)
        .bind(kind)
        .bind(at(seconds))
        .execute(self.db.pool())
        .await
        .unwrap();
        id
    }

    /// An incident with a notification of its opening.
    async fn opened(&self, name: &str, channel: &str, seconds: i64) -> (Uuid, Uuid) {
        let incident = self.incident(name).await;
        (incident, self.notification(incident, channel, "opened", seconds).await)
    }

    fn sender(&self) -> NotificationSender {
        self.sender_within(Duration::from_secs(15))
    }

    fn sender_within(&self, limit: Duration) -> NotificationSender {
        let tls = sexton_tls::TlsClient::default();
        let sender = Sender::new(environment(), tls).within(limit);
        NotificationSender::new(self.db.other_store().unwrap(), sender, CancellationToken::new())
    }

    /// One round at an instant.
    async fn run(&self, seconds: i64) -> DeliveryReport {
        self.sender().run_once(Some(at(seconds))).await.unwrap()
    }

    async fn sql(&self, statement: &'static str) -> u64 {
        sqlx::query(statement).execute(self.db.pool()).await.unwrap().rows_affected()
    }

    async fn texts(&self, query: &'static str) -> Vec<String> {
        sqlx::query_scalar(query).fetch_all(self.db.pool()).await.unwrap()
    }

    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }

    /// Polls until a query counts nothing any more.
    async fn until_none(&self, query: &'static str) {
        let polling = async {
            while self.number(query).await > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(1), polling).await.unwrap();
    }

    /// The notifications in the order in which they were written, as `kind state attempts`.
    async fn states(&self) -> Vec<String> {
        let query = "SELECT kind || ' ' || state || ' ' || attempts FROM sexton.notifications ORDER BY created_at, id";
        self.texts(query).await
    }
}

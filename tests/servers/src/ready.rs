//! Readiness, tested the only way that counts: by connecting as a client does.

use std::time::Duration;

use lapin::{Connection, ConnectionProperties};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::time::{Instant, sleep, timeout};

/// How long one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Connects to PostgreSQL once. The error is for a person.
pub(super) async fn postgres(url: &str) -> Result<(), String> {
    let connected =
        timeout(TRY_TIMEOUT, PgConnection::connect(url)).await.map_err(|_| no_answer())?;
    let connection = connected.map_err(|error| error.to_string())?;
    timeout(TRY_TIMEOUT, connection.close())
        .await
        .map_err(|_| no_answer())?
        .map_err(|e| e.to_string())
}

/// Connects to RabbitMQ once. The error is for a person.
pub(super) async fn rabbit(url: &str) -> Result<(), String> {
    let connecting = Connection::connect(url, ConnectionProperties::default());
    let connected = timeout(TRY_TIMEOUT, connecting).await.map_err(|_| no_answer())?;
    let connection = connected.map_err(|error| error.to_string())?;
    let closing = connection.close(200, "ready".into());
    timeout(TRY_TIMEOUT, closing).await.map_err(|_| no_answer())?.map_err(|e| e.to_string())
}

/// Tries until a connection is made, the server is found ended, or `deadline` has passed.
pub(super) async fn until(
    deadline: Duration,
    connect: impl AsyncFn() -> Result<(), String>,
    mut how_it_ended: impl FnMut() -> Option<String>,
) -> Result<(), String> {
    let end = Instant::now() + deadline;
    loop {
        let Err(reason) = connect().await else { return Ok(()) };
        if let Some(ended) = how_it_ended() {
            return Err(ended);
        }
        if Instant::now() > end {
            return Err(format!("gave up after {} s ({reason})", deadline.as_secs()));
        }
        sleep(RETRY_INTERVAL).await;
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", TRY_TIMEOUT.as_secs())
}

//! A network between the programs and their servers that loses answers.
//!
//! A lost answer is worse than a lost connection: the statement was executed, and the client waits.
//! A proxy swallows the answers to one statement, recognised by its parameters, and passes
//! everything else.

mod cancel;
mod lease;
mod lost_answers;

use std::time::Duration;

use sexton_tests::platform::Platform;
use sexton_tests::proxy::Proxy;

/// Longer than any statement's limit and any lease here.
const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// A proxy before the platform's database, and the URL through it. Without TLS: the proxy must see
/// the parameters on the wire.
async fn before_the_database(platform: &Platform) -> (Proxy, String) {
    let proxy = Proxy::before(platform.database_url()).await.unwrap();
    let url = proxy.url(platform.database_url());
    let separator = if url.contains('?') { '&' } else { '?' };
    (proxy, format!("{url}{separator}sslmode=disable"))
}

async fn until(platform: &Platform, what: &str, wanted: i64) {
    let statement = format!("SELECT count(*) FROM {what}");
    platform
        .eventually(&format!("{wanted} rows of {what}"), FINAL_TIMEOUT, async || {
            let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(statement.clone()))
                .fetch_one(platform.store().pool())
                .await
                .unwrap();
            (count == wanted).then_some(())
        })
        .await;
}

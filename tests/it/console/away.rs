//! Pages while the database is away or slow, and while the server is replaced by another one.

use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use sexton_tests::proxy::Proxy;

use super::play::{Play, site};

/// For the end of a server.
const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn pages_say_what_is_away_and_come_back_by_themselves() {
    let platform = Platform::new().await.unwrap();
    let proxy = Proxy::before(platform.database_url()).await.unwrap();
    let database = proxy.url(platform.database_url());
    let mut server = start(&platform, "first", "127.0.0.1:0", &database).await;
    let site = site(&server);
    let Some(mut play) = Play::start("away.js", &[&site, "/failed"]).await else { return };
    play.expect("open").await;
    proxy.black_hole();
    play.expect("away").await;
    proxy.pass();
    play.expect("back").await;
    // Every page of failures waits for this.
    let mut held = platform.store().pool().begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE sexton.failures").execute(&mut *held).await.unwrap();
    play.expect("slow").await;
    held.rollback().await.unwrap();
    play.expect("fast").await;
    server.terminate();
    server.exit(DEADLINE).await;
    play.expect("replaced").await;
    let address = site.trim_start_matches("http://");
    let _next = start(&platform, "second", address, &database).await;
    play.expect("follows").await;
    play.end().await;
}

async fn start(platform: &Platform, name: &str, address: &str, database: &str) -> Program {
    let settings =
        [("SERVE_LOCAL_ROLE", "viewer"), ("SERVE_ADDR", address), ("DATABASE_URL", database)];
    let mut server = platform.start_server(name, &settings).unwrap();
    server.ready().await;
    server
}

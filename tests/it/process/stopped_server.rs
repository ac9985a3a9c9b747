//! A server that is stopped while it carries out an approved request, whose client has left.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use sexton_tests::platform::Platform;

use super::{FINAL_TIMEOUT, count};

/// Firings are made as long as nobody holds this lock of the test's; no limit for locks concerns it.
const GATE: &str = "
    CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        WHILE NOT pg_try_advisory_xact_lock_shared(4711) LOOP PERFORM pg_sleep(0.02); END LOOP;
        RETURN NEW;
    END $$;
    CREATE TRIGGER gate BEFORE INSERT ON sexton.executions FOR EACH ROW EXECUTE FUNCTION gate()";

const AT_THE_GATE: &str = "pg_stat_activity WHERE state = 'active' AND datname = current_database() AND wait_event = 'PgSleep'";

#[tokio::test]
async fn a_stopped_server_carries_out_first_what_it_has_begun() {
    let platform = Platform::new().await.unwrap();
    let job = "[[job]]\nname = \"a.b\"\nschedule = \"0 1 * * *\"\ntask = \"work\"\n";
    platform.apply(job).await.unwrap();
    let sexton = async |arguments: &[&str]| platform.sexton(arguments).await.status.code();
    assert_eq!(sexton(&["approvals", "rules", "set", "all", "--above", "1"]).await, Some(0));
    let backfill = ["jobs", "backfill", "a.b", "--since", "2024-01-01", "--until", "2024-01-11"];
    assert_eq!(sexton(&[&backfill[..], &["--yes"]].concat()).await, Some(11));
    let pool = platform.store().pool();
    sqlx::raw_sql(GATE).execute(pool).await.unwrap();
    let mut server = platform.start_server("serve", &[("SERVE_LOCAL_ROLE", "editor")]).unwrap();
    server.ready().await;
    let logged = async || {
        let log = server.log();
        let (_, rest) = log.split_once("the console is at http://")?;
        Some(rest.split('/').next()?.to_owned())
    };
    let address = platform.eventually("the server's address", FINAL_TIMEOUT, logged).await;
    let mut gate = pool.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(4711)").execute(&mut *gate).await.unwrap();
    let mut client = TcpStream::connect(&address).unwrap();
    let head = "POST /api/v1/approvals/1/approve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    write!(client, "{head}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let begun = async || (count(&platform, AT_THE_GATE).await > 0).then_some(());
    platform.eventually("the first firing is about to be made", FINAL_TIMEOUT, begun).await;
    drop(client);
    server.terminate();
    let closed = async || TcpStream::connect(&address).is_err().then_some(());
    platform.eventually("nobody is let in any more", FINAL_TIMEOUT, closed).await;
    gate.rollback().await.unwrap();
    assert!(server.exit(Duration::from_mins(1)).await.success(), "{}", server.log());
    let request = platform.sexton_json(&["approvals", "show", "1"]).await;
    assert_eq!(request["state"], "carried_out", "{request}");
    assert_eq!(count(&platform, "sexton.executions").await, 10);
}

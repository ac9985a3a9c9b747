//! What an open page shows of changes that it could miss.

use std::time::Duration;

use futures_util::future::join_all;
use sexton_model::access::Role;
use tokio::time::timeout;

use super::play::Play;
use super::story;
use crate::api::Fixture;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);
/// Open pages of each of two roles.
const PAGES: usize = 40;

#[tokio::test]
async fn a_change_before_the_stream_and_a_refused_stream_are_no_change_missed() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let id = f.console.failed().await;
    story("late.js", &[&f.site(), &format!("/failed/{id}")]).await;
}

#[tokio::test]
async fn a_new_version_of_the_server_reloads_a_page_unless_somebody_works_in_it() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let id = f.console.failed().await;
    story("version.js", &[&f.site(), &format!("/failed/{id}")]).await;
}

#[tokio::test]
async fn new_rows_move_no_row_under_a_pointer_until_it_leaves_or_wants_them() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    let id = f.console.failed().await.to_string();
    let Some(mut play) = Play::start("pointer.js", &[&f.site(), &id]).await else { return };
    let mut newest = String::new();
    for line in ["aims", "aims again", "aims at the oldest"] {
        play.expect(line).await;
        newest = f.console.failed().await.to_string();
    }
    play.expect("aims below").await;
    f.console.run(&["failed", "discard", &newest, "--yes", "--reason", "x"]).await.expect(0);
    play.end().await;
}

/// As after a change that all open pages see at the same time.
#[tokio::test]
async fn what_many_open_pages_fetch_is_made_once_for_each_role_and_names_nobody() {
    let f = Fixture::new().await;
    f.console.failed().await;
    let pool = f.console.store().pool();
    let tokens = [f.token("ann", "viewer").await, f.token("ed", "editor").await];
    // The page waits for this, as for a slow database.
    let mut held = pool.begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE sexton.failures").execute(&mut *held).await.unwrap();
    let fetch = |token: &str| {
        let authorization = format!("Authorization: Bearer {token}");
        let f = &f;
        async move {
            let headers = ["Host: localhost", "Sexton-Refresh: 1", &authorization];
            f.send_to("GET", "/failed", &headers, "").await
        }
    };
    let fetched = join_all((0..2 * PAGES).map(|number| fetch(&tokens[number % 2])));
    let released = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let count = async || sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await.unwrap();
        let both_wait = async {
            while count().await < 2 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        timeout(PATIENCE, both_wait).await.expect("one page is made for each role");
        // These come behind the others, and are answered: the others have been let in.
        for _ in 0..10 {
            f.get(&tokens[0], "/me").await.expect(200);
            assert_eq!(count().await, 2, "one page is made for each role");
        }
        held.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(fetched, released);
    let bodies: Vec<String> =
        answers.into_iter().map(|it| it.expect(200).as_str().unwrap().to_owned()).collect();
    for (number, body) in bodies.iter().enumerate() {
        assert_eq!(body, &bodies[number % 2], "page {number}");
        assert!(body.contains("shop.charge") && !body.contains("token ann"), "{body}");
    }
    assert_ne!(bodies[0], bodies[1], "an editor may do more");
    // A page that is opened is nobody else's, and a refused one is shared with nobody.
    let authorization = format!("Authorization: Bearer {}", tokens[0]);
    let opened = f.send_to("GET", "/failed", &["Host: localhost", &authorization], "").await;
    assert!(opened.expect(200).as_str().unwrap().contains("token ann"));
    let stranger = ["Host: localhost", "Sexton-Refresh: 1"];
    f.send_to("GET", "/failed", &stranger, "").await.expect(303);
}

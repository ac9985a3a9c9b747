//! How many statements a page takes: with hundreds of open pages, each of them counts hundreds of times.

use std::cell::Cell;
use std::sync::Arc;

use chrono::DateTime;
use serde_json::json;
use sexton_model::access::Role;
use sexton_model::approval::ProposalKind;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_server::access::{Backend, Stores};
use sexton_store::StoreOptions;
use sexton_store::approvals::{self, NewRequest, RequestCreation};
use sexton_store::operator::AuditContext;
use sexton_store::output::OutputPart;
use sexton_tests::proxy::Proxy;

use super::{Fixture, LOCAL_HOST, eventually};
use crate::cli::Console;

/// PostgreSQL ends each answer with the kind of its statement and the number of its rows.
const END_OF_READ: &[u8] = b"SELECT ";
/// What an open page sends.
const REFRESH: [&str; 2] = [LOCAL_HOST, "Sexton-Refresh: 1"];

/// A server whose statements are counted, for visitors without a token.
async fn counting() -> (Fixture, Proxy) {
    let console = Arc::new(Console::with_jobs().await);
    let proxy = Proxy::before_counting(console.url(), END_OF_READ).await.unwrap();
    let url = proxy.url(console.url());
    let separator = if url.contains('?') { '&' } else { '?' };
    // The proxy must see the answers on the wire.
    let url = format!("{url}{separator}sslmode=disable");
    let stores = Stores::open(&StoreOptions::new(&url, "api")).unwrap();
    let backend = Backend::new(stores).on("host").with_local_role(Some(Role::Viewer));
    (Fixture::serve(console, |_| backend).await, proxy)
}

/// One of many addresses of the page of an execution with its first attempt: open pages of the same address would share their answer.
fn address(page: &str, number: usize) -> String {
    format!("{page}?attempt={:0>1$}", 1, number + 1)
}

#[tokio::test]
async fn the_page_of_an_execution_takes_five_statements_and_an_open_one_four() {
    let (f, proxy) = counting().await;
    let id = f.console.trigger("shop.charge").await;
    let line = Line {
        at: DateTime::from_timestamp(1_767_225_600, 0).unwrap(),
        stream: Stream::Stdout,
        text: "paper jam".to_owned(),
    };
    let chunks = vec![Arc::new(Chunk::new(1, 0, 10, &[line]))];
    let output = OutputPart { chunks, ..OutputPart::default() };
    f.console.fail(f.console.open(id, 1).await, "no printer", Some(output)).await;
    let page = format!("/executions/{id}");
    let fetch = async |number: usize, headers: &[&str]| {
        let answer = f.send_to("GET", &address(&page, number), headers, "").await.expect(200);
        assert!(answer.as_str().unwrap().contains("paper jam"), "{answer}");
    };
    // The heading, the execution, its attempts, what people did, and the output. The first ones open connections, which takes more.
    let mut least = usize::MAX;
    for number in 0..10 {
        let before = proxy.matches();
        fetch(number, &[LOCAL_HOST]).await;
        least = least.min(proxy.matches() - before);
    }
    assert_eq!(least, 5);
    // Of two at the same time, one at least has the heading of another one.
    let next = Cell::new(10);
    eventually("two open pages take nine statements", async || {
        let number = next.replace(next.get() + 2);
        let before = proxy.matches();
        tokio::join!(fetch(number, &REFRESH), fetch(number + 1, &REFRESH));
        let both = proxy.matches() - before;
        assert!(both >= 8, "{both} statements");
        both <= 9
    })
    .await;
}

/// This test is about the wiring alone: opened pages read the heading, and open ones share it. The tests of `SharedHeading` examine when they
/// share it, with a clock that they set.
#[tokio::test]
async fn a_page_that_is_opened_counts_what_waits_now_and_open_pages_do_not_go_back_behind_it() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    let waits = async |path: &str, headers: &[&str]| {
        let page = f.send_to("GET", path, headers, "").await.expect(200);
        page.as_str().unwrap().contains("Approvals (1)")
    };
    assert!(!waits("/channels", &REFRESH).await);
    let digest = "0".repeat(64);
    let new = NewRequest {
        kind: ProposalKind::Discard,
        proposal: &json!({"execution": "x", "job": "shop.charge"}),
        digest: &digest,
        shown_digest: &digest,
        people: 2,
        rules: &[],
        names: &["account ann".to_owned()],
    };
    let by = AuditContext { actor: "account ann", reason: None };
    let created = approvals::create(f.console.store(), new, by, None).await.unwrap();
    assert!(matches!(created, RequestCreation::Created(_)));
    assert!(waits("/channels", &[LOCAL_HOST]).await);
    assert!(waits("/workers", &REFRESH).await);
}

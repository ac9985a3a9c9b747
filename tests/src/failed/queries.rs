//! The queries, made through the library functions that the commands call.

use anyhow::{Context as _, Result};
use sexton_model::failures::{FailureFilter, GroupDecision, Order, PageCursor};
use sexton_operations::failed::details;
use sexton_operations::filter::{FailureScope, FilterRequest};
use sexton_operations::groups;
use sexton_store::Store;
use sexton_store::failures::{
    GroupChange, GroupFilter, GroupOrder, decide, explain, list_page, search,
};
use sexton_store::operator::AuditContext;
use sexton_store::status;
use tokio::time::Instant;

use super::QueryTimes;

/// The rows of a page, as in the commands.
const PAGE_ROWS: i64 = 50;

/// A query.
#[derive(Clone, Debug)]
pub enum Query {
    /// A page of the list.
    List(Box<FilterRequest>, Order, Start),
    /// All of one execution, a different one each time.
    Show,
    /// The groups, of one job if it is named.
    Groups(Option<&'static str>, GroupOrder),
}

/// Where a page begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At the beginning.
    First,
    /// In the middle of all rows.
    Middle,
}

/// All queries, with their names. The last ones run while the largest groups are muted.
pub fn all_queries() -> Vec<(&'static str, Query)> {
    let list = |change: &dyn Fn(&mut FilterRequest)| {
        let mut request = FilterRequest::default();
        change(&mut request);
        Query::List(Box::new(request), Order::Newest, Start::First)
    };
    let text = |text: &str| Some(text.to_owned());
    let param = |text: &str| vec![text.to_owned()];
    vec![
        ("list, newest first", list(&|_| ())),
        ("list, oldest first", Query::List(Box::default(), Order::Oldest, Start::First)),
        ("list, in the middle", Query::List(Box::default(), Order::Newest, Start::Middle)),
        ("--job, common", list(&|a| a.job = text("team.job7"))),
        ("--job, rare", list(&|a| a.job = text("team.job199"))),
        ("--task-type, common", list(&|a| a.task_type = text("type_7"))),
        ("--task-type, rare", list(&|a| a.task_type = text("type_rare"))),
        ("--pool, common", list(&|a| a.pool = text("pool-1"))),
        ("--pool, rare", list(&|a| a.pool = text("pool-rare"))),
        ("--error-class, common", list(&|a| a.error_class = text("exit_3"))),
        ("--error-class, rare", list(&|a| a.error_class = text("rare_class"))),
        ("--worker, common", list(&|a| a.worker = text("worker-7"))),
        ("--worker, rare", list(&|a| a.worker = text("worker-rare"))),
        ("--text, common", list(&|a| a.text = text("declined by bank"))),
        ("--text, of one group", list(&|a| a.text = text("bank abz"))),
        ("--text, rare", list(&|a| a.text = text("zanzibar"))),
        ("--text, nowhere", list(&|a| a.text = text("atlantis"))),
        ("--label, common", list(&|a| a.label = param("team=t3"))),
        ("--label, rare", list(&|a| a.label = param("team=rare"))),
        ("--params, common", list(&|a| a.params = param("tenant=t1"))),
        ("--params, one in a thousand", list(&|a| a.params = param("order.id=77"))),
        ("--params, one", list(&|a| a.params = param("customer=5000"))),
        ("--params, nowhere", list(&|a| a.params = param("customer=none"))),
        (
            "--since and --until",
            list(&|a| {
                a.since = text("20d");
                a.until = text("19d");
            }),
        ),
        (
            "--job and --text",
            list(&|a| {
                a.job = text("team.job7");
                a.text = text("bank aaz");
            }),
        ),
        (
            "--job and --error-class",
            list(&|a| {
                a.job = text("team.job7");
                a.error_class = text("exit_3");
            }),
        ),
        (
            "--text and --params",
            list(&|a| {
                a.text = text("bank abz");
                a.params = param("tenant=t1");
            }),
        ),
        ("show", Query::Show),
        ("groups", Query::Groups(None, GroupOrder::Count)),
        ("groups, last seen first", Query::Groups(None, GroupOrder::Last)),
        ("groups --job", Query::Groups(Some("team.job7"), GroupOrder::Count)),
    ]
}

/// Runs each query this many times, and again the list by its group and with muted groups.
///
/// # Errors
///
/// Those of the database.
pub async fn measure(store: &Store, rounds: usize) -> Result<Vec<QueryTimes>> {
    let mut all = all_queries();
    let largest =
        groups::list(store, &GroupFilter::default(), GroupOrder::Count, None, 30, None).await;
    let largest: Vec<String> =
        largest?.items.into_iter().map(|largest_group| largest_group.group.fingerprint).collect();
    let of = |fingerprint: &String| {
        let request =
            FilterRequest { group: Some(fingerprint.clone()), ..FilterRequest::default() };
        Query::List(Box::new(request), Order::Newest, Start::First)
    };
    all.push(("--group, common", of(largest.first().context("there is no group")?)));
    let mut answered = Vec::with_capacity(all.len() + 1);
    for (name, question) in &all {
        answered.push(ask(store, name, question, rounds).await?);
    }
    let by = AuditContext { actor: "bench", reason: None };
    for fingerprint in &largest {
        let muted = GroupChange::Decide(GroupDecision::Muted);
        decide(store, fingerprint, muted, by, None).await?;
    }
    let list = Query::List(Box::default(), Order::Newest, Start::First);
    answered.push(ask(store, "list, the largest groups muted", &list, rounds).await?);
    Ok(answered)
}

async fn ask(
    store: &Store,
    name: &'static str,
    question: &Query,
    rounds: usize,
) -> Result<QueryTimes> {
    let mut times = Vec::with_capacity(rounds);
    let mut rows = 0;
    let start = starting(store, question).await?;
    let everything = search(store, &FailureFilter::default(), Order::Oldest, None, 1_000).await?;
    for round in 0..rounds.max(1) {
        let began = Instant::now();
        rows = match question {
            Query::List(request, order, _) => {
                let now = status::clock(store).await?;
                let filter = request.read_failures(store, FailureScope::default(), now).await?;
                list_page(store, &filter, *order, start, PAGE_ROWS).await?.0.len()
            }
            Query::Show => {
                let execution = &everything[(round * 7_919) % everything.len()];
                usize::from(details::find(store, execution.execution_id).await?.is_some())
            }
            Query::Groups(job, order) => {
                let job = match job {
                    Some(name) => sexton_store::jobs::find_including_deleted(store, name)
                        .await?
                        .map(|job| job.id),
                    None => None,
                };
                let filter = GroupFilter { job, ..GroupFilter::default() };
                groups::list(store, &filter, *order, None, PAGE_ROWS, None).await?.items.len()
            }
        };
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    let plans = match question {
        Query::List(request, order, _) => {
            let now = status::clock(store).await?;
            let filter = request.read_failures(store, FailureScope::default(), now).await?;
            explain(store, &filter, *order, start, PAGE_ROWS).await?
        }
        _ => Vec::new(),
    };
    Ok(QueryTimes { name, rows, times, plans })
}

/// The cursor in the middle of the time that the rows cover.
async fn starting(store: &Store, question: &Query) -> Result<Option<PageCursor>> {
    let Query::List(_, order, Start::Middle) = question else { return Ok(None) };
    let all = FailureFilter::default();
    let one = |order| search(store, &all, order, None, 1);
    let (first, last) = (one(Order::Oldest).await?, one(Order::Newest).await?);
    let (Some(first), Some(last)) = (first.first(), last.first()) else { return Ok(None) };
    let at = first.failed_at + (last.failed_at - first.failed_at) / 2;
    Ok(Some(PageCursor { order: *order, at, id: uuid::Uuid::nil() }))
}

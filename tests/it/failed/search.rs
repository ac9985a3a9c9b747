//! Any filter finds what its words say, page by page, in both orders.

use serde_json::{Value, json};
use sexton_model::failures::{FailureFilter, Order, PageCursor, ParamCondition};
use sexton_model::fingerprint::fingerprint;
use sexton_store::failures::{count, list_page, search};
use uuid::Uuid;

use super::{Draw, Failure, REQUEUE, Yard, at};

const MESSAGES: [&str; 5] = [
    "card 4891 declined",
    "card 7 declined by bank",
    "disk full",
    "größe 7 is bad",
    "refused: disk/full",
];
const CLASSES: [&str; 3] = ["exit_1", "signal", "timeout"];
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];
const TEXTS: [&str; 7] = ["declined", "card 4891", "DISK full", "größ", "bank", "de", "full disk"];
const CONDITIONS: [&str; 7] =
    ["a=1", "a=true", "o.id=7", "o.list.1=x", "o.list.0=x", "missing=1", "o.id=07"];

async fn yard() -> (Yard, Vec<(Uuid, Failure)>) {
    let yard = Yard::new().await;
    sqlx::query(
        "UPDATE sexton.jobs SET labels = '{\"team\": \"billing\"}' WHERE name = 'shop.charge'",
    )
    .execute(yard.pool())
    .await
    .unwrap();
    let mut draw = Draw(3);
    let mut rows = Vec::new();
    for _ in 0..120 {
        let params = [
            json!({"a": 1, "o": {"id": "7"}}),
            json!({"a": "1", "o": {"id": 7, "list": ["x", "y"]}}),
            json!({"a": true, "o": {"id": "07", "list": {"0": "x", "1": "x"}}}),
            json!({"a": null, "o": []}),
        ][draw.below(4)]
        .clone();
        let failure = Failure {
            job: yard.jobs[draw.below(2)],
            // Several at one instant.
            at: at(draw.below(40) as i64),
            class: draw.of(&CLASSES),
            message: draw.of(&MESSAGES).to_owned(),
            params,
            worker: Some(draw.of(&WORKERS)),
        };
        rows.push((failure.insert(&yard).await, failure));
    }
    (yard, rows)
}

/// The words of a message, as the index has them.
fn words(text: &str) -> Vec<String> {
    let separates = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    text.split(separates).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn has_text(message: &str, text: &str) -> bool {
    let (message, wanted) = (words(message), words(text));
    let (last, whole) = wanted.split_last().unwrap();
    message
        .windows(wanted.len())
        .any(|some| some[..whole.len()] == *whole && some[whole.len()].starts_with(last.as_str()))
}

fn has_param(params: &Value, condition: &ParamCondition) -> bool {
    let mut value = params;
    for step in &condition.path {
        let inside = match value {
            Value::Array(values) => step.parse::<usize>().ok().and_then(|index| values.get(index)),
            other => other.get(step),
        };
        let Some(inside) = inside else { return false };
        value = inside;
    }
    match value {
        Value::String(text) => *text == condition.value,
        Value::Null => false,
        other => {
            let text = other.to_string();
            text == condition.value
        }
    }
}

fn matches(filter: &FailureFilter, yard: &Yard, failure: &Failure) -> bool {
    let group = fingerprint(failure.class, &failure.message);
    filter.job.is_none_or(|job| job == failure.job)
        && (filter.labels.is_empty() || failure.job == yard.jobs[0])
        && filter.error_class.as_deref().is_none_or(|class| class == failure.class)
        && filter.worker.as_deref().is_none_or(|worker| Some(worker) == failure.worker)
        && filter.fingerprint.is_none_or(|wanted| wanted == group)
        && filter.since.is_none_or(|since| failure.at >= since)
        && filter.until.is_none_or(|until| failure.at < until)
        && filter.text.as_deref().is_none_or(|text| has_text(&failure.message, text))
        && filter.params.iter().all(|condition| has_param(&failure.params, condition))
}

fn drawn(draw: &mut Draw, yard: &Yard) -> FailureFilter {
    let mut filter = FailureFilter::default();
    for _ in 0..=draw.below(3) {
        match draw.below(9) {
            0 => filter.job = Some(yard.jobs[draw.below(2)]),
            1 => filter.error_class = Some(draw.of(&CLASSES).to_owned()),
            2 => filter.worker = Some(draw.of(&WORKERS).to_owned()),
            3 => filter.fingerprint = Some(fingerprint(draw.of(&CLASSES), draw.of(&MESSAGES))),
            4 => filter.since = Some(at(draw.below(40) as i64)),
            5 => filter.until = Some(at(draw.below(40) as i64)),
            6 => filter.text = Some(draw.of(&TEXTS).to_owned()),
            7 => drop(filter.labels.insert("team".to_owned(), "billing".to_owned())),
            _ => filter.params.push(draw.of(&CONDITIONS).parse().unwrap()),
        }
    }
    filter
}

#[tokio::test]
async fn every_filter_finds_its_executions_page_by_page_in_both_orders() {
    let (yard, rows) = yard().await;
    let mut draw = Draw(11);
    let mut found_some = 0;
    for case in 0..300 {
        let filter = drawn(&mut draw, &yard);
        let order = [Order::Newest, Order::Oldest][draw.below(2)];
        let mut expected: Vec<(chrono::DateTime<chrono::Utc>, Uuid)> = rows
            .iter()
            .filter(|(_, failure)| matches(&filter, &yard, failure))
            .map(|(id, failure)| (failure.at, *id))
            .collect();
        expected.sort_unstable();
        if order == Order::Newest {
            expected.reverse();
        }
        let (mut found, mut after): (Vec<_>, Option<PageCursor>) = (Vec::new(), None);
        let limit = 1 + draw.below(40) as i64;
        loop {
            let page = search(yard.db.store(), &filter, order, after, limit).await.unwrap();
            assert!(page.len() as i64 <= limit);
            found.extend(page.iter().map(|row| (row.failed_at, row.execution_id)));
            match page.last() {
                Some(last) if page.len() as i64 == limit => after = Some(last.cursor(order)),
                _ => break,
            }
        }
        assert_eq!(found, expected, "case {case}: {filter}");
        let counted = count(yard.db.store(), &filter, i64::MAX).await.unwrap();
        assert_eq!(counted, expected.len() as i64, "case {case}: {filter}");
        found_some += usize::from(!expected.is_empty());
    }
    assert!(found_some > 150, "{found_some} filters found anything");
}

#[tokio::test]
async fn pages_stay_exact_while_executions_come_and_go() {
    let (yard, _) = yard().await;
    let (filter, newest) = (FailureFilter::default(), Order::Newest);
    let all = search(yard.db.store(), &filter, newest, None, 1_000).await.unwrap();
    let (first, after) = list_page(yard.db.store(), &filter, newest, None, 50).await.unwrap();
    let shown = |page: &[sexton_store::failures::FailedExecution]| -> Vec<Uuid> {
        page.iter().map(|row| row.execution.id).collect()
    };
    assert_eq!(shown(&first), all[..50].iter().map(|row| row.execution_id).collect::<Vec<_>>());
    // One of the first page goes, the row that the cursor stands on among them, one comes, and one of
    // the second page fails again.
    for gone in [3, 49, 60] {
        yard.sql(REQUEUE, all[gone].execution_id).await;
    }
    let again = yard.failure(99, "disk full");
    again.insert(&yard).await;
    again.fail(&yard, all[60].execution_id).await;
    let (second, end) = list_page(yard.db.store(), &filter, newest, after, 1_000).await.unwrap();
    let rest = all[50..].iter().map(|row| row.execution_id);
    let rest: Vec<Uuid> = rest.filter(|id| *id != all[60].execution_id).collect();
    assert_eq!((shown(&second), end), (rest, None));
}

#[tokio::test]
async fn a_stored_filter_whose_text_has_no_word_matches_nothing_rather_than_everything() {
    let (yard, _) = yard().await;
    let filter = FailureFilter { text: Some("--".to_owned()), ..FailureFilter::default() };
    assert!(search(yard.db.store(), &filter, Order::Oldest, None, 5).await.is_err());
    assert!(count(yard.db.store(), &filter, 5).await.is_err());
}

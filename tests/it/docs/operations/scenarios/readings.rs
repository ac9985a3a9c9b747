//! What the metrics of the programs show, and the ledger check.

use chrono::TimeDelta;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::ledger_check::LedgerCheck;

use super::{FINAL_TIMEOUT, Scene};

/// By so much does a counter rise that shows that something goes on.
const ENOUGH: f64 = 3.0;

impl Scene {
    /// Waits until the metrics of all running programs meet a condition: one that [`holds`], `SELECTOR rises`, or
    /// `SELECTOR steady while SELECTOR rises`.
    pub(super) async fn metric(&self, condition: &str) {
        let words: Vec<&str> = condition.split(' ').collect();
        let (steady, rising) = match words[..] {
            [rising, "rises"] => (None, Some(rising)),
            [steady, "steady", "while", rising, "rises"] => (Some(steady), Some(rising)),
            _ => (None, None),
        };
        let mut first = None;
        let look = async || {
            let scrapes = self.scrapes().await;
            let Some(rising) = rising else { return holds(condition, &scrapes).then_some(()) };
            let value = value(rising, &scrapes)?;
            let beside = steady.and_then(|steady| self::value(steady, &scrapes));
            let (begin, beside_then) = *first.get_or_insert((value, beside));
            if beside != beside_then {
                // It was not steady yet, and counts anew from here.
                first = Some((value, beside));
                return None;
            }
            (value - begin >= ENOUGH).then_some(())
        };
        self.platform.eventually(condition, FINAL_TIMEOUT, look).await;
    }

    async fn scrapes(&self) -> String {
        let mut scrapes = String::new();
        for program in self.programs.values() {
            // One that is frozen or ending answers nothing.
            scrapes.extend(program.ask("/metrics").await.map(|(_, response)| response));
        }
        scrapes
    }

    /// Checks the ledger, each time some minutes after the time before, until a query counts one or more.
    pub(super) async fn check_ledger(&self, query: &str) {
        let store = self.platform.store();
        let check = LedgerCheck::new(store.clone());
        let mut minutes = 0;
        let checked = async || {
            minutes += 2;
            let now = "SELECT clock_timestamp()";
            let now: chrono::DateTime<chrono::Utc> =
                sqlx::query_scalar(now).fetch_one(store.pool()).await.unwrap();
            check.run_once(Some(now + TimeDelta::minutes(minutes))).await.unwrap();
            (self.count(query).await > 0).then_some(())
        };
        self.platform.eventually(query, FINAL_TIMEOUT, checked).await;
    }
}

/// Whether a condition holds: `SELECTOR [minus SELECTOR] > NUMBER`, the same with `==`, or `SELECTOR absent`. A selector is a
/// name with some labels, and stands for the sum of its series.
fn holds(condition: &str, scrapes: &str) -> bool {
    let words: Vec<&str> = condition.split(' ').collect();
    let value = |selector: &str| value(selector, scrapes);
    let is = |operator: &str, value: Option<f64>, limit: &str| {
        let limit: f64 = limit.parse().unwrap();
        value.is_some_and(|value| match operator {
            ">" => value > limit,
            "==" => (value - limit).abs() < 1e-9,
            other => panic!("no comparison is called {other}"),
        })
    };
    match words[..] {
        [selector, "absent"] => value(selector).is_none(),
        [selector, operator, limit] => is(operator, value(selector), limit),
        [selector, "minus", other, operator, limit] => {
            let difference = value(selector).zip(value(other)).map(|(one, other)| one - other);
            is(operator, difference, limit)
        }
        _ => panic!("no condition: {condition}"),
    }
}

/// The sum of the series that a selector selects; `None`: there is no such series.
fn value(selector: &str, scrapes: &str) -> Option<f64> {
    let (name, labels) = selector.split_once('{').unwrap_or((selector, ""));
    let labels: Vec<&str> =
        labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()).collect();
    let values: Vec<f64> = scrapes
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.trim().rsplit_once(' '))
        .filter(|(series, _)| {
            series.split('{').next() == Some(name)
                && labels.iter().all(|label| series.contains(label))
        })
        .map(|(_, value)| value.parse().unwrap())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[test]
fn a_condition_holds_for_the_sum_of_the_selected_series() {
    let scrapes =
        "# TYPE a gauge\na{pool=\"x\",state=\"p\"} 2\na{pool=\"y\",state=\"p\"} 3.5\nab 7\n# EOF\n";
    for (condition, expected) in [
        ("a == 5.5", true),
        ("a{pool=\"x\"} == 2", true),
        ("a{state=\"p\",pool=\"y\"} > 3", true),
        ("a{pool=\"x\"} > 2", false),
        ("ab minus a{pool=\"x\"} == 5", true),
        ("a{pool=\"z\"} absent", true),
        ("a{pool=\"z\"} == 0", false),
        ("ab absent", false),
    ] {
        assert_eq!(holds(condition, scrapes), expected, "{condition}");
    }
}

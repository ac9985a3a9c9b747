//! Many occurrences that are reported together come to what they would one after the other.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use sexton_model::incident::{Severity, SubjectKind};
use sexton_store::incidents::{Occurrence, recover, report};
use sexton_tests::database::TestDatabase;

use super::at;

/// Each incident: subject, state, occurrences and last detail; then its timeline, and its notifications.
const INCIDENTS: &str = "SELECT format('%s %s %s %s [%s] [%s]', i.subject, i.state, i.occurrences, i.detail,
        (SELECT string_agg(e.kind || ' ' || e.detail, ', ' ORDER BY e.id) FROM sexton.incident_events e WHERE e.incident_id = i.id),
        (SELECT string_agg(n.kind || ' ' || n.detail, ', ' ORDER BY n.created_at, n.id) FROM sexton.notifications n
         WHERE n.incident_id = i.id))
    FROM sexton.incidents i ORDER BY i.subject, i.opened_at";

fn occurrence(subject: &str, detail: &str) -> Occurrence {
    Occurrence {
        subject_kind: SubjectKind::Platform,
        subject: subject.to_owned(),
        name: subject.to_owned(),
        cause: "missed".to_owned(),
        severity: Severity::High,
        labels: BTreeMap::new(),
        detail: detail.to_owned(),
        job: None,
        execution: None,
        occurrences: 1,
        remind_every_ms: None,
    }
}

#[tokio::test]
async fn occurrences_that_are_reported_together_come_to_what_they_would_one_by_one() {
    let mut seen = Vec::new();
    for is_together in [true, false] {
        let db = TestDatabase::create().await.unwrap();
        sqlx::raw_sql(
            "INSERT INTO sexton.channels (name, kind, config, updated_at) VALUES ('ops', 'webhook', '{}', now());
             INSERT INTO sexton.routes (position, channels) VALUES (1, '{ops}')",
        )
        .execute(db.pool())
        .await
        .unwrap();
        let mut connection = db.pool().acquire().await.unwrap();
        let rounds = [
            vec![("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")],
            vec![("b", "5"), ("c", "6"), ("d", "7")],
            vec![("d", "8"), ("b", "9"), ("e", "10")],
        ];
        for (number, found) in rounds.into_iter().enumerate() {
            let now = at(0) + TimeDelta::minutes(number as i64);
            let found: Vec<Occurrence> =
                found.into_iter().map(|(subject, detail)| occurrence(subject, detail)).collect();
            let size = if is_together { found.len() } else { 1 };
            for some in found.chunks(size) {
                report(&mut connection, some, now).await.unwrap();
            }
            if number == 1 {
                // The next round opens two of them again; one that is unknown, and one twice, do no harm.
                let over = ["b", "d", "nobody", "b"].map(|subject| {
                    (SubjectKind::Platform, subject.to_owned(), format!("{subject} is well"))
                });
                let now = now + TimeDelta::seconds(1);
                let mut resolved = 0;
                for some in over.chunks(if is_together { over.len() } else { 1 }) {
                    resolved += recover(&mut connection, some, now).await.unwrap();
                }
                assert_eq!(resolved, 2);
            }
        }
        let lines: Vec<String> = sqlx::query_scalar(INCIDENTS).fetch_all(db.pool()).await.unwrap();
        seen.push(lines);
    }
    let expected = [
        "a open 3 4 [opened 1, occurred 3, occurred 4] [opened 1]",
        "b open 3 9 [opened 2, occurred 5, resolved b is well, reopened 9] [opened 2, resolved b is well, reopened 9]",
        "c open 1 6 [opened 6] [opened 6]",
        "d open 2 8 [opened 7, resolved d is well, reopened 8] [opened 7, resolved d is well, reopened 8]",
        "e open 1 10 [opened 10] [opened 10]",
    ];
    assert_eq!(seen, [expected, expected]);
}

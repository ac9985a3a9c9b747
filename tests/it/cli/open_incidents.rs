//! The open incidents at a glance, in `sexton status`.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Console, keys};

impl Console {
    /// An incident that opened this many seconds ago.
    pub(crate) async fn incident(&self, name: &str, severity: &str, state: &str, seconds: i32) {
        sqlx::query(
            "INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, detail, state, opened_at,
                 changed_at, resolved_at)
             SELECT $1, 'job', $2, $2, 'never_ran', $3, 'a detail', $4, at, at, CASE WHEN $4 = 'resolved' THEN at END
             FROM (SELECT now() - $5 * interval '1 second' AS at) t",
        )
        .bind(Uuid::now_v7())
        .bind(name)
        .bind(severity)
        .bind(state)
        .bind(f64::from(seconds))
        .execute(self.db.pool())
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn status_names_the_worst_open_incidents_and_counts_the_others() {
    let console = Console::new().await;
    let status = console.json(&["status"]).await;
    let none = json!({"high": 0, "medium": 0, "low": 0, "worst": []});
    assert_eq!(status["incidents"], none);
    let text = console.run(&["status"]).await.expect(0).stdout;
    assert!(text.contains("incidents  none open\n"), "{text}");
    assert!(!text.contains("INCIDENT"), "{text}");

    console.incident("a.resolved", "high", "resolved", 1).await;
    for (name, severity, state, seconds) in [
        ("b.low", "low", "open", 10),
        ("c.old", "medium", "open", 300),
        ("d.new", "medium", "acknowledged", 20),
        ("e.high", "high", "open", 900),
        ("f.old", "medium", "open", 400),
        ("g.older", "medium", "open", 500),
        ("h.oldest", "medium", "open", 600),
    ] {
        console.incident(name, severity, state, seconds).await;
    }
    let open = console.json(&["status"]).await["incidents"].take();
    let counts = (&open["high"], &open["medium"], &open["low"]);
    assert_eq!(counts, (&json!(1), &json!(5), &json!(1)));
    let worst = open["worst"].as_array().unwrap();
    let names: Vec<&Value> = worst.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["e.high", "d.new", "c.old", "f.old", "g.older"]);
    let fields = ["cause", "id", "name", "opened_at", "severity", "state", "subject_kind"];
    assert_eq!(keys(&worst[0]), fields);

    // Incidents have notifications; they are no warnings.
    let text = console.run(&["status", "--check"]).await.expect(0).stdout;
    assert!(text.contains("incidents  1 high, 5 medium, 1 low open\n"), "{text}");
    let table = text.lines().skip_while(|line| !line.starts_with("INCIDENT")).take(7);
    let rows: Vec<Vec<&str>> = table.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["INCIDENT", "CAUSE", "SEVERITY", "STATE", "SINCE"]);
    assert_eq!(rows[1][..6], ["job", "e.high", "never", "ran", "high", "open"]);
    assert_eq!(rows[2][1..6], ["d.new", "never", "ran", "medium", "acknowledged"]);
    assert_eq!(rows[6].join(" "), "… and 2 more: sexton incidents list");
}

//! Ranges of services that are gone.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn a_range_whose_keys_no_job_has_is_removed_and_its_numbers_are_free() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing"]).await.expect(0);
    f.run(&["keys", "assign", "shop"]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 1000"), ("billing.stop", "lock_key = 1049")])
        .await
        .expect(0);
    let used = f.run(&["keys", "remove", "billing"]).await.expect(4).text();
    assert!(
        used.contains(
            "jobs use keys of billing (1000 to 1049): billing.run (1000), billing.stop (1049)"
        ),
        "{used}"
    );
    for job in ["billing.run", "billing.stop"] {
        f.run(&["jobs", "delete", job, "--reason", "gone", "--yes"]).await.expect(0);
    }
    let dry = f.run(&["keys", "remove", "billing", "--dry-run"]).await.expect(0).text();
    assert_eq!(dry, "- billing (1000 to 1049)\nNothing was removed.\n");
    assert_eq!(f.ranges().await, ["billing 1000 50", "shop 1050 50"]);
    let text = f.run(&["keys", "remove", "billing", "--reason", "sold"]).await.expect(0).text();
    assert_eq!(text, "- billing (1000 to 1049)\n");
    assert_eq!(f.ranges().await, ["shop 1050 50"]);
    let again = f.run(&["keys", "remove", "billing"]).await.expect(3).text();
    assert!(again.contains("\"billing\" has no range of lock keys"), "{again}");
    f.run(&["keys", "assign", "web", "--start", "1000"]).await.expect(0);
    let removed = f.json(&["keys", "remove", "web"], 0).await;
    let range = json!({"service": "web", "start": 1000, "keys": 50});
    assert_eq!(removed, json!({"dry_run": false, "before": range, "after": null}));
    let recorded = "SELECT string_agg(concat_ws(' ', reason, before ->> 'service', before ->> 'start', after), ', ' ORDER BY id)
                    FROM sexton.operator_actions WHERE action = 'remove_keys'";
    let recorded: String = sqlx::query_scalar(recorded).fetch_one(f.db.pool()).await.unwrap();
    assert_eq!(recorded, "sold billing 1000, web 1000");
}

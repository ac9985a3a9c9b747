//! Shortened ids: what tables show can be typed.

use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::factory::NewExecution;

use super::Console;

/// The cells of one column of a table.
fn column(table: &str, heading: &str) -> Vec<String> {
    let mut lines = table.lines();
    let at = lines.next().unwrap().find(heading).unwrap_or_else(|| panic!("{heading}: {table}"));
    let rows = lines.map(|line| line[at..].split_whitespace().next().unwrap_or_default());
    rows.map(str::to_owned).collect()
}

#[tokio::test]
async fn each_shortened_id_of_a_table_can_be_typed_and_is_as_short_as_can_be() {
    let console = Console::with_jobs().await;
    // Of the same minute, so that eight digits are not enough.
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(console.failed().await.to_string());
    }
    let pending = console.trigger("shop.mail").await.to_string();
    let table = console.run(&["executions", "list"]).await.expect(0).stdout;
    let shown = column(&table, "ID");
    let newest_first: Vec<&String> = [&pending].into_iter().chain(ids.iter().rev()).collect();
    assert_eq!(shown.len(), newest_first.len(), "{table}");
    for (short, id) in shown.iter().zip(&newest_first) {
        assert!(id.starts_with(short) && short.len() < id.len(), "{short} of {id}");
        let typed = console.json(&["executions", "show", short]).await;
        assert_eq!(typed["id"].as_str(), Some(id.as_str()), "{table}");
        // One digit less is another's beginning as well.
        let shorter = short[..short.len() - 1].trim_end_matches('-');
        let digits = shorter.chars().filter(|c| *c != '-').count();
        if digits >= 8 {
            let ambiguous = console.run(&["executions", "show", shorter]).await.expect(2).stderr;
            assert!(
                ambiguous.contains("is the beginning of several executions' ids"),
                "{ambiguous}"
            );
            assert!(ambiguous.contains(" (shop.charge, failed)"), "{ambiguous}");
        }
    }
    let failed = console.run(&["failed", "list"]).await.expect(0).stdout;
    for (short, id) in column(&failed, "ID").iter().zip(ids.iter().rev()) {
        let shown = console.json(&["failed", "show", short]).await;
        assert_eq!(shown["id"].as_str(), Some(id.as_str()), "{failed}");
    }
    for group in column(&failed, "GROUP") {
        assert_eq!(group.len(), 8, "{failed}");
        console.run(&["groups", "show", &group]).await.expect(0);
    }
    let groups = console.run(&["groups", "list"]).await.expect(0).stdout;
    for group in column(&groups, "FINGERPRINT") {
        console.run(&["groups", "show", &group]).await.expect(0);
    }
    console.run(&["failed", "discard", &ids[0], "--reason", "known", "--yes"]).await.expect(0);
    let audit = console.run(&["audit", "list"]).await.expect(0).stdout;
    let discarded = column(&audit, "ON").swap_remove(0);
    let shown = console.json(&["executions", "show", &discarded]).await;
    assert_eq!(shown["id"].as_str(), Some(ids[0].as_str()), "{audit}");
    let job = console.run(&["jobs", "show", "shop.mail"]).await.expect(0).stdout;
    assert!(job.contains(&format!("\n{}", &pending[..8])), "{job}");
}

#[tokio::test]
async fn an_id_is_as_long_as_executions_of_the_same_instant_need() {
    let console = Console::with_jobs().await;
    let at = clock::now();
    let job = sexton_store::jobs::find(console.store(), "shop.mail").await.unwrap().unwrap();
    for _ in 0..3 {
        let new = NewExecution::new(JobId::new(job.id), State::Succeeded, at);
        new.insert(console.db.pool()).await.unwrap();
    }
    let table = console.run(&["executions", "list"]).await.expect(0).stdout;
    for short in column(&table, "ID") {
        // A beginning of 48 bits is the same for all.
        assert!(short.len() >= "01234567-89ab-7c".len(), "{table}");
        console.run(&["executions", "show", &short]).await.expect(0);
    }
}

//! The forms about incidents, channels and checks.

use super::{BECAUSE, Outcome, Submission, Walk};
use crate::api::audited::SENT_AT_ONCE;
use crate::api::trigger_all::execute;

async fn act_on_incident(walk: &mut Walk) {
    walk.f.console.incident("backup", "high", "open", 60).await;
    let incidents = walk.f.console.items(&["incidents", "list"]).await;
    let id = incidents[0]["id"].as_str().unwrap();
    let page = format!("/incidents/{id}");
    // The silence lasts about as long as it was typed.
    let row = format!(
        "SELECT concat_ws(' ', state, CASE WHEN silenced_until - now() BETWEEN '80 min' AND '90 min' THEN 'silenced' END, silence_reason)
         FROM sexton.incidents WHERE id = '{id}'"
    );
    let silence = [("for", "90m"), BECAUSE];
    let because = [BECAUSE];
    let steps: [(&str, &[_], _, _, _); 4] = [
        (
            "/incidents/{id}/acknowledge",
            &because,
            "acknowledged",
            "acknowledge_incident",
            "acknowledged",
        ),
        (
            "/incidents/{id}/silence",
            &silence,
            "silenced",
            "silence_incident",
            "acknowledged silenced it's due",
        ),
        ("/incidents/{id}/unsilence", &because, "unsilenced", "unsilence_incident", "acknowledged"),
        ("/incidents/{id}/resolve", &because, "resolved", "resolve_incident", "resolved"),
    ];
    for (route, values, done, action, state) in steps {
        let outcome = format!("{page}?done={done}");
        let submission = Submission {
            route,
            part: id,
            page: &page,
            values,
            outcome: Outcome::LeadsTo(&outcome),
            action,
        };
        walk.submit(submission).await;
        assert_eq!(walk.text(&row).await, state);
    }
}

async fn test_channel(walk: &mut Walk) {
    let alerts = "[[channel]]\nname = \"ops\"\nslack = { url = { env = \"SLACK_URL\" } }\n";
    walk.run(&["alerts", "apply", "-f", &walk.f.console.file("alerts.toml", alerts)]).await;
    execute(&walk.f, SENT_AT_ONCE).await;
    let test = Submission {
        route: "/channels/{name}/test",
        part: "ops",
        page: "/channels",
        values: &[],
        outcome: Outcome::LeadsTo("/channels?tested=ops"),
        action: "test_channel",
    };
    walk.submit(test).await;
    let row = "SELECT kind || ' ' || state FROM sexton.notifications WHERE channel = 'ops'";
    assert_eq!(walk.text(row).await, "test sent");
}

async fn pause_and_resume_check(walk: &mut Walk) {
    let checks = "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"1m\"\n";
    walk.run(&["checks", "apply", "-f", &walk.f.console.file("checks.toml", checks)]).await;
    let row = "SELECT is_paused::text FROM sexton.checks WHERE name = 'backup'";
    for (route, action, is_paused) in [
        ("/checks/{name}/pause", "pause_check", "true"),
        ("/checks/{name}/resume", "resume_check", "false"),
    ] {
        let submission = Submission {
            route,
            part: "backup",
            page: "/checks/backup",
            values: &[BECAUSE],
            outcome: Outcome::LeadsTo("/checks/backup"),
            action,
        };
        walk.submit(submission).await;
        assert_eq!(walk.text(row).await, is_paused);
    }
}

pub(super) async fn submit_all(walk: &mut Walk) {
    act_on_incident(walk).await;
    test_channel(walk).await;
    pause_and_resume_check(walk).await;
}

//! The params schema of a handler, which its worker publishes and every command checks before
//! anything runs with other params.

use serde_json::{Value, json};
use sexton_tests::platform::{CommandOutput, Platform};

use super::super::{FINAL_TIMEOUT, by_hand, count, until};

/// Params that violate the schema in two places.
const WRONG: &str = r#"{"parcel": {"grams": 0}, "to": "x-secret"}"#;

struct Depot {
    platform: Platform,
}

impl Depot {
    async fn run(&self, args: &[&str], code: i32) -> CommandOutput {
        let ended = self.platform.sexton(args).await;
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {ended}");
        ended
    }

    /// A jobs file of the job `a.ship` with these params, in the third line.
    fn file(&self, params: &str) -> String {
        let path = self.platform.folder().join("ship.toml");
        let text =
            format!("# Parcels.\n\n{}", by_hand("a.ship", "ship", &format!("params = {params}")));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn assert_schema_problems(text: &str) {
    for part in ["/parcel/grams: must be 1 or more", "/to: does not match the pattern"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("x-secret"), "places, not values: {text}");
}

#[tokio::test]
async fn apply_and_trigger_check_params_against_the_handler_s_schema() {
    let depot = Depot { platform: Platform::new().await.unwrap() };
    let mut worker = depot.platform.start_handlers("w1", &[]).unwrap();
    worker.ready().await;
    let wrong = depot.file(r#"{ parcel = { grams = 0 }, to = "x-secret" }"#);
    // `--strict` refuses the file, and writes nothing.
    let ended = depot.run(&["jobs", "apply", "-f", &wrong, "--strict"], 1).await;
    assert_schema_problems(&ended.stderr);
    assert!(ended.stderr.contains("ship.toml:4: job \"a.ship\": "), "{ended}");
    let ended = depot.run(&["--json", "jobs", "apply", "-f", &wrong, "--strict"], 1).await;
    let refused: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(refused["problems"].as_array().map(Vec::len), Some(2), "{ended}");
    assert_eq!(count(&depot.platform, "sexton.jobs").await, 0);
    // Without it, the command warns: the workers that will run the job may come later.
    let ended = depot.run(&["jobs", "apply", "-f", &wrong, "--dry-run"], 0).await;
    assert_schema_problems(&ended.stderr);
    let ended = depot.run(&["jobs", "apply", "-f", &wrong], 0).await;
    assert_schema_problems(&ended.stderr);
    assert!(ended.stdout.contains("+ a.ship") && !ended.stdout.contains("/parcel"), "{ended}");
    let document = depot.platform.sexton_json(&["jobs", "apply", "-f", &wrong]).await;
    assert_eq!(document["unchanged"], json!(["a.ship"]), "also where nothing changes");
    assert_eq!(
        (&document["schema_mismatches"][0]["job"], &document["schema_mismatches"][0]["at"]),
        (&json!("a.ship"), &json!("/parcel/grams"))
    );
    // A trigger would run at once. Its params are the job's, overridden by the arguments.
    let ended = depot.run(&["jobs", "trigger", "a.ship", "--params", WRONG], 2).await;
    assert_schema_problems(&ended.stderr);
    let half = r#"{"parcel": {"grams": 7}}"#;
    let ended = depot.run(&["jobs", "trigger", "a.ship", "--params", half], 2).await;
    assert!(ended.stderr.contains("/to: ") && !ended.stderr.contains("/parcel"), "{ended}");
    assert_eq!(count(&depot.platform, "sexton.executions").await, 0);
    let right = r#"{"parcel": {"grams": 7}, "to": "DE-20095"}"#;
    depot.run(&["jobs", "trigger", "a.ship", "--params", right], 0).await;
    let fits = depot.file(r#"{ parcel = { grams = 1 }, to = "DE-20095" }"#);
    let ended = depot.run(&["jobs", "apply", "-f", &fits, "--strict"], 0).await;
    assert_eq!(ended.stderr, "");
    depot.run(&["jobs", "trigger", "a.ship", "--params", half], 0).await;
    let _scheduler = depot.platform.start_scheduler("s1", &[]).unwrap();
    until(&depot.platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    // No running worker publishes a schema any more.
    worker.terminate();
    worker.exit(FINAL_TIMEOUT).await;
    let wrong = depot.file(r#"{ parcel = { grams = 0 }, to = "x-secret" }"#);
    let ended = depot.run(&["jobs", "apply", "-f", &wrong, "--strict"], 0).await;
    assert_eq!(ended.stderr, "");
    depot.run(&["jobs", "trigger", "a.ship", "--params", WRONG], 0).await;
}

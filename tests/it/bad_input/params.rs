//! Params that no row can keep are refused where somebody writes them, and nothing is applied.

use super::platform;
use sexton_tests::platform::Platform;

const GOOD: &str = "[[job]]\nname = \"billing.good\"\ntask = \"report\"\n";

async fn count(platform: &Platform, table: &str) -> i64 {
    let sql = match table {
        "jobs" => "SELECT count(*) FROM sexton.jobs",
        _ => "SELECT count(*) FROM sexton.executions",
    };
    sqlx::query_scalar(sql).fetch_one(platform.store().pool()).await.unwrap()
}

/// Applies a good job and a bad one; the refusal must hold these words, and neither is there after.
async fn is_refused(params: &str, words: &[&str]) {
    let platform = platform().await;
    let bad =
        format!("{GOOD}\n[[job]]\nname = \"billing.bad\"\ntask = \"report\"\nparams = {params}\n");
    let error = platform.apply(&bad).await.unwrap_err().to_string();
    for word in [&["exit status: 1", ".toml", "billing.bad", "params"], words].concat() {
        assert!(error.contains(word), "{word:?} is missing: {error}");
    }
    assert_eq!(
        count(&platform, "sexton.jobs").await,
        0,
        "a file is applied as a whole or not at all"
    );
}

#[tokio::test]
async fn a_jobs_file_with_params_over_the_limit_is_refused_with_file_job_field_and_sizes() {
    let params = format!("{{ blob = \"{}\" }}", "x".repeat(256 * 1024));
    is_refused(&params, &["262144 at most", ":8"]).await;
}

#[tokio::test]
async fn a_jobs_file_with_a_nul_in_its_params_is_refused_with_the_place() {
    is_refused(r#"{ customers = ["a", "b\u0000c"] }"#, &["params.customers[1]", "NUL", ":8"]).await;
}

#[tokio::test]
async fn a_trigger_whose_params_make_the_job_s_too_large_is_refused() {
    let platform = platform().await;
    // An argument of a program may have 128 KiB: it takes the job's own params to get over the limit.
    let jobs_file = format!("{GOOD}params = {{ blob = \"{}\" }}\n", "x".repeat(200 * 1024));
    platform.apply(&jobs_file).await.unwrap();
    let more = format!("{{\"more\":\"{}\"}}", "y".repeat(100 * 1024));
    let output = platform.sexton(&["jobs", "trigger", "billing.good", "--params", &more]).await;
    assert_eq!(output.status.code(), Some(2), "{output}");
    assert!(output.stderr.contains("the params have"), "{output}");
    assert!(output.stderr.contains("more than 262144"), "{output}");
    assert_eq!(count(&platform, "sexton.executions").await, 0);
}

#[tokio::test]
async fn a_trigger_with_a_nul_or_no_object_in_its_params_is_refused_with_the_way_to_write_them() {
    let platform = platform().await;
    platform.apply(GOOD).await.unwrap();
    for (params, word) in [
        (r#"{"customer":"a\u0000b"}"#, "U+0000"),
        (r#"{"a\u0000b":1}"#, "U+0000"),
        ("[1]", "write it as in '{\"customer\": 4891}'"),
        ("{customer: 4891}", "write it as in '{\"customer\": 4891}'"),
    ] {
        let output =
            platform.sexton(&["jobs", "trigger", "billing.good", "--params", params]).await;
        assert_eq!(output.status.code(), Some(2), "{output}");
        assert!(output.stderr.contains("--params"), "{output}");
        assert!(output.stderr.contains(word), "{word:?} is missing: {output}");
    }
    assert_eq!(count(&platform, "sexton.executions").await, 0);
}

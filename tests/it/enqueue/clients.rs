//! The clients for other languages, each by its own test program against the real functions.

use std::process::Stdio;
use std::time::Duration;

use sexton_tests::database::TestDatabase;
use tokio::process::Command;
use tokio::time::timeout;

/// What `client/check.sh` answers where a language's tools are missing.
const MISSING: i32 = 77;
/// For the packages of a language, and for its compiler on a machine that runs other tests.
const PATIENCE: Duration = Duration::from_mins(8);

async fn check(language: &str) {
    let db = TestDatabase::create().await.unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../client/check.sh");
    let running = Command::new("sh")
        .args([script, language])
        .env("DATABASE_URL", db.url())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = timeout(PATIENCE, running).await.unwrap().unwrap();
    let output = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    if done.status.code() == Some(MISSING) {
        return sexton_tests::untested::report_untested(&format!(
            "the client for {language}: {output}"
        ));
    }
    assert!(done.status.success(), "{language}: {output}");
    assert!(output.contains(" passed, 0 failed"), "{language}: {output}");
}

#[tokio::test]
async fn the_client_for_python_answers_as_the_conformance_file_says() {
    check("python").await;
}

#[tokio::test]
async fn the_client_for_typescript_answers_as_the_conformance_file_says() {
    check("typescript").await;
}

#[tokio::test]
async fn the_client_for_java_answers_as_the_conformance_file_says() {
    check("java").await;
}

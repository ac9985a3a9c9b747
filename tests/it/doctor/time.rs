//! Clocks that are off, time zones of other releases, and a jump.

use sexton_console::doctor::Code;
use sexton_servers::faketime_library;
use sexton_tests::factory::NewJob;

use super::{Patient, evidence};

#[tokio::test]
async fn doctor_finds_clock_offset() {
    let patient = Patient::new().await;
    patient.is_well().await;
    let library = faketime_library().await.unwrap();
    for (off, said) in [("+3600s", "ahead of"), ("-3600s", "behind")] {
        let env = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", off),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let found = patient.has_with(&env, Code::ClockOffset).await;
        assert!(evidence(&found).contains(said), "{found}");
    }
}

#[tokio::test]
async fn doctor_finds_time_zones_differ() {
    let patient = Patient::new().await;
    NewJob::new("a.b").insert(patient.platform.store().pool()).await.unwrap();
    patient.sql("UPDATE jobs SET tz_version = '2026a', status = 'paused', paused_at = now()").await;
    patient.process("scheduler", "new", "ready => true, tz_version => '2026a'").await;
    patient.has_no(Code::TimeZonesDiffer).await;
    patient.process("scheduler", "old", "ready => true, tz_version => '2025b'").await;
    let found = patient.has(Code::TimeZonesDiffer).await;
    assert!(evidence(&found).contains("old has 2025b"), "{found}");
}

#[tokio::test]
async fn doctor_finds_catch_up_held() {
    let patient = Patient::new().await;
    patient
        .sql(
            "INSERT INTO holds (reason, last_seen, noticed_at, noticed_by)
             VALUES ('forward', now() - interval '2 days', now(), 'test:1')",
        )
        .await;
    patient.has(Code::CatchUpHeld).await;
}

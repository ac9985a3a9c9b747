//! Clocks that are off, time zones of other releases, and a jump.

use sexton_operations::doctor::Code;
use sexton_servers::faketime_library;
use sexton_tests::factory::NewJob;

use super::{DoctorFixture, evidence};

#[tokio::test]
async fn doctor_finds_clock_offset() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    let library = faketime_library().await.unwrap();
    for (off, direction) in [("+3600s", "ahead of"), ("-3600s", "behind")] {
        let env = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", off),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let found = fixture.has_with(&env, Code::ClockOffset).await;
        assert!(evidence(&found).contains(direction), "{found}");
    }
}

#[tokio::test]
async fn doctor_finds_time_zones_differ() {
    let fixture = DoctorFixture::new().await;
    NewJob::new("a.b").insert(fixture.platform.store().pool()).await.unwrap();
    fixture
        .sql("UPDATE sexton.jobs SET tz_version = '2026a', status = 'paused', paused_at = now()")
        .await;
    fixture.process("scheduler", "new", "ready => true, tz_version => '2026a'").await;
    fixture.has_no(Code::TimeZonesDiffer).await;
    fixture.process("scheduler", "old", "ready => true, tz_version => '2025b'").await;
    let found = fixture.has(Code::TimeZonesDiffer).await;
    assert!(evidence(&found).contains("old has 2025b"), "{found}");
}

#[tokio::test]
async fn doctor_finds_catch_up_held() {
    let fixture = DoctorFixture::new().await;
    fixture
        .sql(
            "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
             VALUES ('forward', now() - interval '2 days', now(), 'test:1')",
        )
        .await;
    fixture.has(Code::CatchUpHeld).await;
}

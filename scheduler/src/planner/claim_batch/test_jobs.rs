//! Due jobs for tests.

use chrono::{DateTime, Utc};
use sexton_model::cron::Dst;
use sexton_model::id::JobId;
use sexton_model::job::{Misfire, Overlap, Schedule, ScheduleConstraints};
use sexton_model::plan::overlap::UnderWay;
use sexton_model::pool::PoolName;
use sexton_model::zone::Zone;
use sexton_store::firing::DueJob;
use uuid::Uuid;

/// Returns the job with this number, due on time.
pub(crate) fn job(number: u128, expression: &str) -> DueJob {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    DueJob {
        id: JobId::new(Uuid::from_u128(number)),
        name: format!("job{number}"),
        schedule: Schedule::Cron { expression: expression.to_owned() },
        constraints: ScheduleConstraints::default(),
        runs_used: 0,
        planned_until: None,
        timezone: Zone::UTC,
        dst: Dst::default(),
        days: None,
        outdated_since: None,
        tz_version: None,
        task_type: "report".to_owned(),
        target: None,
        params: serde_json::json!({}),
        pool: PoolName::default_pool(),
        idempotency_template: None,
        templated: false,
        overlap: Overlap::Allow,
        misfire: Misfire::default(),
        next_fire_at: at("2026-01-01T08:00:00Z"),
        pause_after_failures: None,
        under_way: UnderWay::default(),
        now: at("2026-01-01T08:00:00.004Z"),
    }
}

//! Tells that catch-up is held: once, by the scheduler that noticed it, for whoever watches the logs.

use sexton_model::time_jump::TimeJump;
use sexton_store::firing::ClockJump;

/// A warning with what was seen and what to do.
pub(crate) fn log_jump(noticed: &ClockJump) {
    let jump_s = noticed.jump.by().num_seconds();
    let remedy =
        "sexton jobs catch-up --dry-run shows what is set aside; then --release or --discard";
    match noticed.jump {
        TimeJump::Forward(_) => tracing::warn!(
            clock.last_seen = %noticed.last_seen,
            clock.now = %noticed.now,
            clock.jump_s = jump_s,
            "catch-up is held: the database's time is {jump_s} s ahead of when a scheduler last saw it \
             (a clock that was set, a backup, or an absence longer than CATCH_UP_HOLD_MS); {remedy}"
        ),
        TimeJump::Backward(_) => tracing::warn!(
            clock.last_seen = %noticed.last_seen,
            clock.now = %noticed.now,
            clock.jump_s = -jump_s,
            "catch-up is held: the database's time is {jump_s} s behind when a scheduler last saw it; \
             {remedy}"
        ),
    }
}

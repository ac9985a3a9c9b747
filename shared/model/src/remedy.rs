//! Where the documents say what to do about an incident.

use crate::incident::SubjectKind;

/// Returns the section of the documents about an incident, as a path from the repository's root with a heading.
///
/// The same cause needs other commands for a job of the platform than for a foreign one, so the subject decides as well. What
/// only the doctor finds is in the doctor's list. A cause of a later version leads to the page about its subject.
pub fn section_of(subject: SubjectKind, cause: &str) -> &'static str {
    match subject {
        SubjectKind::Job => of_job(cause),
        SubjectKind::Check => of_check(cause),
        SubjectKind::Group => "docs/operations/incidents.md#reopened_group",
        SubjectKind::Platform => of_platform(cause),
        SubjectKind::Channel => "docs/operations/incidents.md#channel_fails",
    }
}

fn of_job(cause: &str) -> &'static str {
    match cause {
        "late" => "docs/operations/incidents.md#late",
        "missed" => "docs/operations/incidents.md#missed",
        "too_long" => "docs/operations/incidents.md#too_long",
        "parked" => "docs/operations/incidents.md#parked",
        "failed" => "docs/operations/incidents.md#failed",
        "never_ran" => "docs/operations/incidents.md#never_ran",
        "lock_held" => "docs/operations/incidents.md#lock_held",
        _ => "docs/operations/incidents.md",
    }
}

fn of_check(cause: &str) -> &'static str {
    match cause {
        "missed" => "docs/operations/incidents.md#check-missed",
        "too_long" => "docs/operations/incidents.md#check-too_long",
        "failed" => "docs/operations/incidents.md#check-failed",
        "never_ran" => "docs/operations/incidents.md#check-never_ran",
        _ => "docs/operations/checks.md#what-opens-an-incident",
    }
}

fn of_platform(cause: &str) -> &'static str {
    match cause {
        "ping_endpoint_down" => "docs/operations/incidents.md#ping_endpoint_down",
        "heartbeats_undelivered" => "docs/operations/incidents.md#heartbeats_undelivered",
        "pool_without_workers" => {
            "docs/operations/runbook.md#executions-are-pending-and-nothing-runs"
        }
        "failed_queue_too_deep" | "failed_queue_too_old" => {
            "docs/operations/runbook.md#many-tasks-failed-with-one-error"
        }
        "broker_unreachable" | "tickets_unpublished" | "tickets_lost" => {
            "docs/operations/runbook.md#rabbitmq-is-down-or-was-restarted"
        }
        "audit_unsealed" => "docs/operations/requeue.md#the-chain-of-the-audit",
        "leases_overdue" => "docs/operations/runbook.md#a-worker-is-silent",
        "catch_up_held" => {
            "docs/operations/runbook.md#catch-up-is-held-a-restored-backup-or-a-clock-jump"
        }
        "database_read_only" => "docs/operations/runbook.md#postgresql-takes-no-writes",
        "migrations_missing" => "docs/operations/runbook.md#a-migration-failed-or-is-missing",
        _ => "docs/operations/doctor.md#errors",
    }
}

//! Every metric that a Sexton program answers.

use super::family::{Info, Kind, Label, Metric, Values};
pub use super::per_job::{JOB_CONSECUTIVE_FAILURES, JOB_LAST_SUCCESS, JOB_NEXT_FIRING};
pub use super::server::HTTP_REQUEST_DURATION;
use super::{Counter, Gauge, Histogram, SnapshotCounter, SnapshotGauge};
use crate::settings::Program::{self, Scheduler, Server, Worker};

const EACH: &[Program] = &[Scheduler, Worker, Server];
const BOTH: &[Program] = &[Scheduler, Worker];
const SCHEDULER: &[Program] = &[Scheduler];
const WORKER: &[Program] = &[Worker];

const POOL: Label = Label { name: "pool", values: Values::Chosen("a worker pool") };
const TASK_TYPE: Label = Label { name: "task_type", values: Values::Chosen("a task type") };
const LOOP: Label =
    Label { name: "loop", values: Values::Fixed("a background loop: `planner`, `relay` …") };

const fn words(name: &'static str, values: &'static str) -> Label {
    Label { name, values: Values::Fixed(values) }
}

const fn info(
    name: &'static str,
    kind: Kind,
    programs: &'static [Program],
    labels: &'static [Label],
    help: &'static str,
) -> Info {
    Info { name, help, kind, labels, programs, is_platform: false }
}

/// A value of the whole platform, which each scheduler answers.
const fn platform(
    name: &'static str,
    kind: Kind,
    labels: &'static [Label],
    help: &'static str,
) -> Info {
    Info { name, help, kind, labels, programs: SCHEDULER, is_platform: true }
}

/// What runs.
pub static BUILD_INFO: Gauge<2> = Gauge::new(info(
    "build_info",
    Kind::Gauge,
    EACH,
    &[
        words("program", "`scheduler`, `worker` or `sexton serve`"),
        words("version", "the program's version"),
    ],
    "The running program; always 1.",
));

/// Observations beyond the bound of series.
pub static SERIES_DROPPED: Counter<0> = Counter::new(info(
    "series_dropped",
    Kind::Counter,
    EACH,
    &[],
    "Observations recorded under `_other`, and platform values left out, beyond 1,000 series.",
));

/// Links to RabbitMQ.
pub static BROKER_CONNECTED: Gauge<1> = Gauge::new(info(
    "broker_connected",
    Kind::Gauge,
    BOTH,
    &[words("link", "`broker` of a scheduler, `consuming` and `publishing` of a worker")],
    "1 while this process is connected to RabbitMQ, else 0.",
));

/// Waits for a connection to PostgreSQL.
pub static DB_ACQUIRE: Histogram<0> = Histogram::of_waits(info(
    "db_acquire_seconds",
    Kind::Histogram,
    EACH,
    &[],
    "How long a transaction waited for a connection of the pool, and for its BEGIN.",
));

/// Confirms of the broker.
pub static PUBLISH_CONFIRM: Histogram<0> = Histogram::of_waits(info(
    "publish_confirm_seconds",
    Kind::Histogram,
    BOTH,
    &[],
    "How long RabbitMQ took to confirm a batch of messages.",
));

/// Lost attempts.
pub static LEASES_LOST: Counter<0> = Counter::new(info(
    "leases_lost",
    Kind::Counter,
    BOTH,
    &[],
    "Attempts that this process ended as lost, because their worker died or let the lease run out.",
));

/// Firings by what a planner did with them.
pub static FIRINGS: Counter<1> = Counter::new(info(
    "firings",
    Kind::Counter,
    SCHEDULER,
    &[words(
        "disposition",
        "`claimed`: to run now; `queued`: waits for the job's running execution; `skipped` or \
         `missed`: does not run, by the job's policies; `held`: waits for an operator's release",
    )],
    "Firings that this scheduler accounted for.",
));

/// From due to published.
pub static FIRING_LAG: Histogram<0> = Histogram::of_waits(info(
    "firing_lag_seconds",
    Kind::Histogram,
    SCHEDULER,
    &[],
    "From the instant at which an execution was due to the confirm of its first ticket; not of \
     those that waited for their job.",
));

/// Rounds of loops.
pub static LOOP_ROUND: Histogram<1> = Histogram::of_waits(info(
    "loop_round_seconds",
    Kind::Histogram,
    SCHEDULER,
    &[LOOP],
    "How long a round of a background loop took.",
));

/// Failed rounds.
pub static LOOP_ERRORS: Counter<1> = Counter::new(info(
    "loop_errors",
    Kind::Counter,
    SCHEDULER,
    &[LOOP],
    "Rounds of a background loop that failed, but for want of RabbitMQ; the next begins afresh.",
));

/// Items of bulks.
pub static BULK_ITEMS: Counter<1> = Counter::new(info(
    "bulk_items",
    Kind::Counter,
    SCHEDULER,
    &[words("outcome", "`done` or `refused`")],
    "Items of bulks that this scheduler carried out.",
));

/// Notifications by what became of them.
pub static NOTIFICATIONS: Counter<2> = Counter::new(info(
    "notifications",
    Kind::Counter,
    SCHEDULER,
    &[
        words("channel_kind", "`webhook`, `email`, `slack`, `pagerduty` or `alertmanager`"),
        words(
            "outcome",
            "`sent`; `failed`: is tried again; `parked`: given up; `dropped`: nobody needs it any more",
        ),
    ],
    "Notifications that this scheduler sent, tried or dropped.",
));

/// Heartbeats by what became of them.
pub static HEARTBEATS: Counter<1> = Counter::new(info(
    "heartbeats",
    Kind::Counter,
    SCHEDULER,
    &[words(
        "outcome",
        "`sent`; `failed`: is tried again; `dropped`: too old, or of a job without a heartbeat",
    )],
    "Heartbeats of jobs that this scheduler sent, tried or dropped.",
));

/// The dead man's switch.
pub static DEADMAN_LAST_PING: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "deadman_last_ping_timestamp_seconds",
    Kind::Gauge,
    &[],
    "When the watcher behind `DEADMAN_URL` last accepted a ping, in seconds since 1970; absent without one.",
));

/// Open incidents.
pub static INCIDENTS_OPEN: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "incidents_open",
    Kind::Gauge,
    &[words("severity", "`low`, `medium` or `high`")],
    "Incidents that are not resolved, acknowledged ones included.",
));

/// The oldest notification that waits.
pub static NOTIFICATION_OLDEST: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "notification_oldest_seconds",
    Kind::Gauge,
    &[],
    "For how long the oldest notification waits that should have been sent; 0 without one.",
));

/// Firings without a record.
pub static UNACCOUNTED_FIRINGS: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "unaccounted_firings",
    Kind::Gauge,
    &[],
    "Firings that the ledger check found without a record. Must be 0.",
));

/// How far the ledger check has come.
pub static LEDGER_CHECK_AGE: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "ledger_check_age_seconds",
    Kind::Gauge,
    &[],
    "How long ago the ledger check last looked at the job that it has not looked at for longest.",
));

/// Unpublished tickets.
pub static UNPUBLISHED_TICKETS: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "unpublished_tickets",
    Kind::Gauge,
    &[],
    "Tickets that RabbitMQ has not confirmed yet.",
));

/// The oldest unpublished ticket.
pub static UNPUBLISHED_TICKET_OLDEST: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "unpublished_ticket_oldest_seconds",
    Kind::Gauge,
    &[],
    "For how long the oldest of them has been due; 0 without one.",
));

/// Jobs with set-aside firings.
pub static CATCH_UP_HELD_JOBS: SnapshotGauge<0> = SnapshotGauge::new(platform(
    "catch_up_held_jobs",
    Kind::Gauge,
    &[],
    "Jobs with late firings that wait for `sexton jobs catch-up`.",
));

/// Executions that are not ended.
pub static EXECUTIONS: SnapshotGauge<2> = SnapshotGauge::new(platform(
    "executions",
    Kind::Gauge,
    &[POOL, words("state", "`pending`, `waiting` for their job, `running` or `retrying`")],
    "Executions that have not ended.",
));

/// The oldest due execution.
pub static DUE_OLDEST: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "due_oldest_seconds",
    Kind::Gauge,
    &[POOL],
    "For how long the oldest waiting execution has been due; 0 without one.",
));

/// Slots of live workers.
pub static POOL_SLOTS: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "pool_slots",
    Kind::Gauge,
    &[POOL],
    "Slots of all workers with a heartbeat within the last minute.",
));

/// Failed executions.
pub static FAILED: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "failed",
    Kind::Gauge,
    &[POOL],
    "Failed executions that wait for an operator.",
));

/// The oldest failed execution.
pub static FAILED_OLDEST: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "failed_oldest_seconds",
    Kind::Gauge,
    &[POOL],
    "For how long the oldest of them has waited.",
));

/// Failure groups.
pub static FAILED_GROUPS: SnapshotGauge<1> = SnapshotGauge::new(platform(
    "failed_groups",
    Kind::Gauge,
    &[words("state", "`open`, `muted`, `resolved` or `reopened`")],
    "Groups of failed executions.",
));

/// Requeues.
pub static REQUEUED: SnapshotCounter<1> = SnapshotCounter::new(platform(
    "requeued",
    Kind::Counter,
    &[words("how", "`single`, `bulk`, or `hand`: a message moved in RabbitMQ")],
    "Failed executions that operators requeued since this scheduler's start.",
));

/// Ended attempts.
pub static ATTEMPTS: Counter<3> = Counter::new(info(
    "attempts",
    Kind::Counter,
    WORKER,
    &[
        POOL,
        TASK_TYPE,
        words(
            "outcome",
            "`succeeded`, `error`, `permanent`, `timeout`, `signal`, `out_of_memory`, `cancelled`, `interrupted`, \
             `snoozed`, `locked` or `lost`",
        ),
    ],
    "Attempts that ended on this worker.",
));

/// Run times.
pub static ATTEMPT_DURATION: Histogram<2> = Histogram::of_runs(info(
    "attempt_duration_seconds",
    Kind::Histogram,
    WORKER,
    &[POOL, TASK_TYPE],
    "How long attempts ran.",
));

/// From due to opened.
pub static QUEUE_WAIT: Histogram<1> = Histogram::of_waits(info(
    "queue_wait_seconds",
    Kind::Histogram,
    WORKER,
    &[POOL],
    "From the instant at which an attempt was due to its begin.",
));

/// Slots of this worker.
pub static SLOTS: Gauge<2> = Gauge::new(info(
    "slots",
    Kind::Gauge,
    WORKER,
    &[POOL, words("state", "`busy` or `idle`")],
    "Slots of this worker.",
));

/// All metrics, in the order of the page.
pub static ALL: &[&dyn Metric] = &[
    &FIRINGS,
    &FIRING_LAG,
    &UNACCOUNTED_FIRINGS,
    &LEDGER_CHECK_AGE,
    &CATCH_UP_HELD_JOBS,
    &UNPUBLISHED_TICKETS,
    &UNPUBLISHED_TICKET_OLDEST,
    &PUBLISH_CONFIRM,
    &EXECUTIONS,
    &DUE_OLDEST,
    &POOL_SLOTS,
    &ATTEMPTS,
    &ATTEMPT_DURATION,
    &QUEUE_WAIT,
    &SLOTS,
    &LEASES_LOST,
    &INCIDENTS_OPEN,
    &NOTIFICATIONS,
    &NOTIFICATION_OLDEST,
    &HEARTBEATS,
    &DEADMAN_LAST_PING,
    &FAILED,
    &FAILED_OLDEST,
    &FAILED_GROUPS,
    &JOB_LAST_SUCCESS,
    &JOB_NEXT_FIRING,
    &JOB_CONSECUTIVE_FAILURES,
    &REQUEUED,
    &BULK_ITEMS,
    &LOOP_ROUND,
    &LOOP_ERRORS,
    &HTTP_REQUEST_DURATION,
    &BROKER_CONNECTED,
    &DB_ACQUIRE,
    &BUILD_INFO,
    &SERIES_DROPPED,
];

//! The scheduler: claims firings, publishes tickets, and keeps PostgreSQL and RabbitMQ in step.
//!
//! Any number of replicas run side by side without a leader: each loop is safe to run anywhere at any
//! time, because the rows decide and every statement repeats its condition.
//!
//! | folder | loops | do |
//! |---|---|---|
//! | [`planner`] | [`planner`] | claims the firings that are due |
//! | | [`cursors`](planner::cursors) | recomputes cursors when the time zone data is newer |
//! | [`publish`] | [`relay`](publish::relay) | publishes the tickets that are still unpublished |
//! | [`maintenance`] | [`rescuer`](maintenance::rescuer) | ends attempts whose worker vanished |
//! | | [`reconciler`](maintenance::reconciler) | publishes tickets again that the broker lost |
//! | | [`failure_aggregator`](maintenance::failure_aggregator) | keeps the failure index, and counts its groups |
//! | | [`pruner`](maintenance::pruner) | removes rows that are older than the retention |
//! | | [`audit_sealer`](maintenance::audit_sealer) | appends operators' actions to the audit's chain |
//! | | [`ledger_check`](maintenance::ledger_check) | looks for firings without a record |
//! | | [`platform_metrics`](maintenance::platform_metrics) | reads the values of the whole platform for `/metrics` |
//! | | [`heartbeat`](maintenance::heartbeat) | records that this process is alive |
//! | [`alerts`] | [`notification_sender`](alerts::delivery) | sends notifications to channels |
//! | [`sweep`] | [`sweep`] | keeps the failed queue in step with the rows |
//! | [`bulks`] | [`bulks`] | carries out operators' actions on many executions |
//!
//! Every loop is a struct with `run_once`, which holds all behaviour ([`background_loop`]), and one runner
//! ([`background_loop::runner`]) runs them all: it waits for a timer, a notification or the shutdown. Two tasks
//! run beside the loops: [`publish::dispatch`] publishes freshly claimed tickets, and [`notifications`] listens
//! for notifications of the database. [`start_up`] precedes all of them, and [`program`] assembles them.

mod adaptive_batch;
pub mod alerts;
pub mod background_loop;
pub mod bulks;
pub mod notifications;
pub mod planner;
pub mod program;
pub mod start_up;
pub mod sweep;

/// The loops that keep rows and queues in order: lost attempts, lost tickets, the failure index, retention.
pub mod maintenance {
    pub mod audit_sealer;
    pub mod failure_aggregator;
    pub mod flow_maker;
    pub mod heartbeat;
    pub mod ledger_check;
    pub mod ping_trimmer;
    pub mod platform_metrics;
    pub mod pruner;
    pub mod reconciler;
    pub mod rescuer;
    pub mod stopwatch;
}

/// The publishing of tickets.
pub mod publish {
    pub mod dispatch;
    mod in_flight;
    mod late_marks;
    pub mod outbox;
    pub mod relay;
}

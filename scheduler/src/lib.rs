//! The scheduler: claims firings, publishes tickets, and keeps PostgreSQL and RabbitMQ in step.
//!
//! Any number of replicas run side by side without a leader: each loop is safe to run anywhere at any
//! time, because the rows decide and every statement repeats its condition.
//!
//! | folder | loops | do |
//! |---|---|---|
//! | [`planner`] | [`planner`] | claims the firings that are due |
//! | | [`cursors`](planner::cursors) | computes cursors anew when the data of the zones is newer |
//! | [`publish`] | [`relay`](publish::relay) | publishes the tickets that are still unpublished |
//! | [`maintenance`] | [`rescuer`](maintenance::rescuer) | ends attempts whose worker vanished |
//! | | [`reconciler`](maintenance::reconciler) | publishes again what the broker lost |
//! | | [`failure_aggregator`](maintenance::failure_aggregator) | keeps the register of failures, and counts its groups |
//! | | [`pruner`](maintenance::pruner) | removes what is older than the retention |
//! | | [`heartbeat`](maintenance::heartbeat) | says that this process is alive |
//! | [`sweep`] | [`sweep`] | keeps the failed queue in step with the rows |
//! | [`bulks`] | [`bulks`] | carries out what operators asked for of many executions at once |
//!
//! Every loop is a struct with `run_once`, which holds all behaviour ([`background_loop`]), and is run by one
//! runner ([`background_loop::runner`]) that waits for a timer, news or shutdown. Two tasks run beside the loops:
//! [`publish::dispatch`] publishes freshly claimed tickets, and [`notifications`] listens for news from the database.
//! [`start_up`] comes before all of them, and [`program`] puts them together.

pub mod background_loop;
pub mod bulks;
pub mod notifications;
pub mod planner;
pub mod program;
pub mod start_up;
pub mod sweep;

/// What keeps rows and queues in order: lost attempts, lost tickets, the register of failures, retention.
pub mod maintenance {
    pub mod failure_aggregator;
    pub mod heartbeat;
    pub mod pruner;
    pub mod reconciler;
    pub mod rescuer;
    pub mod stopwatch;
}

/// The way of every ticket out of this process.
pub mod publish {
    pub mod dispatch;
    mod in_flight;
    pub mod outbox;
    pub mod relay;
}

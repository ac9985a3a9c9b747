//! The scheduler: claims firings, publishes what is owed, and keeps PostgreSQL and RabbitMQ in step.
//!
//! Any number of replicas run side by side without a leader: each loop is safe to run anywhere at any
//! time, because the rows decide and every statement repeats its condition.
//!
//! | loop | does |
//! |---|---|
//! | [`planner`] | claims the firings that are due |
//! | [`relay`] | publishes the tickets that are still unpublished |
//! | [`bulks`] | carries out what operators asked for of many executions at once |
//! | [`rescuer`] | ends attempts whose worker vanished |
//! | [`reconciler`] | owes again what the broker lost |
//! | [`sweep`] | keeps the failed queue in step with the rows |
//! | [`failure_aggregator`] | keeps the register of failures, and counts its groups |
//! | [`cursors`] | computes cursors anew when the data of the zones is newer |
//! | [`pruner`] | retention |
//! | [`heartbeat`] | says that this process is there |
//!
//! Every loop is a struct with `run_once`, which holds all behaviour ([`background_loop`]), and is run by one
//! runner ([`runner`]) that waits for a timer, news or shutdown. Two tasks run beside the loops:
//! [`dispatch`] publishes freshly claimed tickets, and [`notifications`] listens for news from the database.
//! [`program`] puts them together.

mod adaptive_batch;
mod admission;
pub mod background_loop;
pub mod bulks;
mod catch_up_hold;
mod claim_batch;
pub mod cron_jobs;
pub mod cursors;
pub mod dispatch;
pub mod environment;
mod execution_ids;
pub mod failure_aggregator;
pub mod heartbeat;
mod in_flight;
mod next_wakeup;
pub mod notifications;
pub mod outbox;
pub mod planner;
mod planner_report;
pub mod program;
pub mod pruner;
mod quarantine;
pub mod reconciler;
pub mod relay;
pub mod rescuer;
pub mod runner;
pub mod start_up;
pub mod stopwatch;
pub mod sweep;
mod timetable_cache;

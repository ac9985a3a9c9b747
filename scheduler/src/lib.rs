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
//! | [`registrar`] | keeps the register of failures, and counts its groups |
//! | [`cursors`] | computes cursors anew when the data of the zones is newer |
//! | [`pruner`] | retention |
//! | [`watch`] | says that this process is there |
//!
//! Every loop is a struct with `run_once`, which holds all behaviour ([`step`]), and is run by one
//! runner ([`runner`]) that waits for a timer, news or shutdown. Two tasks run beside the loops:
//! [`dispatch`] publishes freshly claimed tickets, and [`wakes`] listens for news from the database.
//! [`program`] puts them together.

mod admission;
mod alarm;
mod batch;
mod broker;
pub mod bulks;
pub mod cron_jobs;
pub mod cursors;
pub mod dispatch;
mod draw;
pub mod environment;
mod flights;
mod holds;
mod notice;
pub mod outbox;
mod planned;
pub mod planner;
mod portion;
pub mod program;
pub mod pruner;
mod quarantine;
pub mod reconciler;
pub mod registrar;
pub mod relay;
pub mod rescuer;
pub mod runner;
pub mod start_up;
pub mod step;
pub mod stopwatch;
pub mod sweep;
mod timetables;
pub mod wakes;
pub mod watch;

use sexton_service::throttle;

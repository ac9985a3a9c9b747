//! Bulks: an action on many executions at once, which the schedulers carry out.
//!
//! [`request`] previews a bulk and writes it; from then on it needs no further program. [`watch`] reports its
//! progress, [`control`] stops and resumes it. If a job has a verify task, a requeue of a few executions is also a
//! bulk ([`verified_requeue`]), since the question takes a while; [`verify`] runs an operator's command instead.
//! Where a rule demands approval, executions that are given by their ids are one, too ([`ruled`]).

pub mod blocked_questions;
pub mod control;
pub mod items;
pub mod options;
pub mod request;
pub mod ruled;
pub mod verified_requeue;
pub mod verify;
pub mod verify_command;
pub mod watch;

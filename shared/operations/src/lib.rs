//! What people and their tools ask of the platform.
//!
//! Level 2 of the workspace: each function here is one request, with typed values for its answer and typed errors for
//! its refusals. The command line stands on it, and so will an HTTP API and pages: they read a request, call one
//! function, and render what it returns. Nothing here prints, asks a question back, or ends a process. A request that
//! changes something takes an [`actor::Actor`], and is in the audit.
//!
//! - [`jobs`], [`executions`], [`failed`], [`groups`], [`bulks`], [`unknown_messages`]: what there is, and what can be
//!   done about it.
//! - [`ledger`]: what became of firings. [`audit`]: what operators did.
//! - [`status`]: is it well. [`doctor`]: what is wrong, and repairs that are safe while the platform works.
//! - [`connect`]: the connection to the database that requests run over.
//! - [`error`]: why a request was refused. What helps differs between a command line and a page, so the one that
//!   renders an error adds it.
//! - [`execution_ids`], [`job_names`], [`instants`], [`params_schemas`]: how what people write is read.
//! - [`text`]: words for people in answers. [`secrets`]: answers without what looks like a secret.

pub mod actor;
pub mod audit;
pub mod bulks;
pub mod connect;
pub mod doctor;
pub mod error;
pub mod execution_ids;
pub mod executions;
pub mod failed;
pub mod groups;
pub mod instants;
pub mod job_names;
pub mod jobs;
pub mod ledger;
pub mod params_schemas;
pub mod secrets;
pub mod status;
pub mod text;
pub mod unknown_messages;

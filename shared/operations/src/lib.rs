//! The operations of the platform for people and their tools.
//!
//! Level 2 of the workspace: each function is one request, with typed values for its answer and typed errors for its
//! refusals. The command line stands on it, and so will an HTTP API and pages: they parse a request, call one
//! function, and render the result. Nothing here prints, prompts, or ends a process. A request that changes something
//! takes an [`actor::Actor`], and the audit records it.
//!
//! - [`jobs`], [`executions`], [`failed`], [`groups`], [`bulks`], [`unknown_messages`]: the platform's objects, and
//!   the actions on them.
//! - [`enqueue`]: executions for programs, by the functions that every language calls.
//! - [`ledger`]: the dispositions of firings. [`audit`]: operators' actions.
//! - [`lock_keys`]: the keys of advisory locks: formulas, and the registry of who has which numbers.
//! - [`alerts`]: channels and routes as a file, and notifications. [`channels`]: the state of channels, and tests of them.
//! - [`cron`]: cron expressions, tried without a job.
//! - [`changes`]: whether something that people look at has changed.
//! - [`checks`]: checks of foreign jobs, and the keys of their pings. [`pings`]: accepts pings.
//! - [`tokens`], [`accounts`]: who may use the API, and what for. [`passwords`]: those of accounts. [`request_keys`]: requests that are
//!   sent again. [`persons`]: people whom an identity provider vouches for. [`secret_text`]: random secrets.
//! - [`approvals`]: actions that wait for other people; [`decisions`]: what those decide, and how it is carried out.
//! - [`workers`]: the worker processes, and what each runs. [`locks`]: who holds or waits for which lock of a job.
//! - [`status`]: the platform's state. [`doctor`]: its problems, and repairs that are safe while the platform works.
//! - [`connect`]: the connection to the database that requests run over.
//! - [`error`]: why a request was refused. The remedy differs between a command line and a page, so the code that
//!   renders an error adds it.
//! - [`execution_ids`], [`job_names`], [`instants`], [`params_schemas`]: parsing of people's texts. [`completions`]:
//!   what may complete them; [`short_ids`]: the beginnings of ids that may be typed.
//! - [`filter`], [`selection`]: which executions a list shows or an action takes. [`paging`]: pages of lists, and the
//!   cursors between them.
//! - [`text`]: words for people in answers. [`secrets`]: masks values that look like secrets. [`digest`]: SHA-256.

pub mod accounts;
pub mod actor;
pub mod alerts;
pub mod approvals;
pub mod audit;
pub mod bulks;
pub mod changes;
pub mod channels;
pub mod checks;
pub mod completions;
pub mod connect;
pub mod cron;
pub mod decisions;
pub mod digest;
pub mod doctor;
pub mod enqueue;
pub mod error;
pub mod execution_ids;
pub mod executions;
pub mod failed;
pub mod filter;
pub mod flows;
pub mod gaps;
pub mod groups;
pub mod incidents;
pub mod instants;
pub mod job_names;
pub mod jobs;
pub mod ledger;
pub mod lock_keys;
pub mod locks;
pub mod monitors;
pub mod paging;
pub mod params_schemas;
pub mod passwords;
pub mod persons;
pub mod pings;
pub mod request_keys;
pub mod schema_mismatch;
mod scope;
pub mod secret_text;
pub mod secrets;
pub mod selection;
pub mod short_ids;
pub mod status;
pub mod text;
pub mod tokens;
pub mod unknown_messages;
pub mod workers;

//! Bulks: one operator action on many executions, at any size.
//!
//! **The selection is written first.** A bulk begins as `preparing`, and the schedulers select its items in batches,
//! each from where the previous one ended ([`prepare()`]), so that a million items need neither one transaction nor
//! one process's memory. A bulk selects only executions that had failed when the operator looked, at the attempt
//! number that they had then; to cancel, those that had been claimed, and waited or ran.
//!
//! **Any scheduler carries it out**, batch by batch ([`execute_batch()`]): one transaction locks the bulk (so
//! that two schedulers never share its pace and its canary), locks the executions in the order of their ids, moves
//! those that are unchanged since the selection, records each in the audit, and counts. So after a crash every item
//! is either done, recorded and counted, or untouched. An item that an operator, a worker or another bulk has changed
//! meanwhile is refused, and the item says so.
//!
//! **If a job has a verify task**, its items wait until that task has answered that their effect has not happened
//! ([`process_questions()`]).
//!
//! The program that created the bulk may end at any time; it only watches.

mod blocked_questions;
mod canary;
mod command_answer;
mod control;
mod create;
mod execute;
mod item_page;
mod items;
mod later_success;
mod prepare;
mod preview;
mod prune;
mod question;
mod rows;
mod select;
mod verify_command;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

pub use blocked_questions::{BlockedQuestions, UnofferedQuestions, list_blocked_questions};
pub use command_answer::record_answer;
pub use control::{ControlError, abort, resume, stop};
pub(crate) use create::insert;
pub use create::{
    BulkSelector, NewBulk, VERIFY_BY_COMMAND, VERIFY_BY_NOBODY, VERIFY_BY_TASK, create, create_with,
};
pub use execute::{ExecutedBatch, execute_batch};
pub use item_page::{ItemPage, ListedItem, MAX_WALKED_ITEMS, page_of_items};
pub use items::{Item, list_items};
pub use prepare::{Prepared, prepare};
pub use preview::{
    MAX_PREVIEW_EXECUTIONS, Preview, any_job_has_verify_task, count_with_verify_task, preview,
    preview_cancel, preview_cancel_of_ids, preview_ids,
};
pub use prune::prune;
pub use question::{MAX_QUESTION_WAIT_MINUTES, QuestionRound, process_questions};
pub use verify_command::{count_unasked, record_verify_command};

use crate::{Store, StoreError};

/// Maximum number of bulks that a scheduler serves in one round.
pub const MAX_ACTIVE_BULKS: usize = 100;

/// A row of `bulks`; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Bulk {
    pub id: i64,
    pub kind: String,
    pub selector: Value,
    pub previewed_at: DateTime<Utc>,
    pub actor: String,
    pub from_where: Option<String>,
    pub reason: Option<String>,
    pub rate: Option<String>,
    pub canary: Option<i32>,
    pub pool: Option<String>,
    pub verify: Option<String>,
    pub state: String,
    pub why: Option<String>,
    pub stopped_by: Option<String>,
    pub prepared_at: Option<DateTime<Utc>>,
    pub canary_passed: bool,
    pub selected: i64,
    pub done: i64,
    pub refused: i64,
    pub resolved: i64,
    pub left_alone: i64,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

impl Bulk {
    /// Number of selected items that are still open.
    pub const fn remaining(&self) -> i64 {
        self.selected - self.done - self.refused - self.resolved - self.left_alone
    }
}

/// Returns one bulk.
pub async fn find(store: &Store, id: i64) -> Result<Option<Bulk>, StoreError> {
    Ok(sqlx::query_as!(
        Bulk,
        "-- find_bulk
        SELECT id, kind, selector, previewed_at, actor, from_where, reason, rate, canary, pool, verify, state,
               why, stopped_by, prepared_at, canary_passed, selected, done, refused, resolved, left_alone,
               created_at, ended_at
        FROM sexton.bulks WHERE id = $1",
        id
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// Returns the newest bulks, at most `limit`, and only those older than `before` if that is given.
pub async fn list(store: &Store, before: Option<i64>, limit: i64) -> Result<Vec<Bulk>, StoreError> {
    Ok(sqlx::query_as!(
        Bulk,
        "-- list_bulks
        SELECT id, kind, selector, previewed_at, actor, from_where, reason, rate, canary, pool, verify, state,
               why, stopped_by, prepared_at, canary_passed, selected, done, refused, resolved, left_alone,
               created_at, ended_at
        FROM sexton.bulks WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC LIMIT $2",
        before,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the bulks that a scheduler has to serve, at most [`MAX_ACTIVE_BULKS`]: oldest first, but those after
/// `after` before all others, so that a hundred waiting bulks delay no other. A bulk whose open items all wait for an
/// answer is left out until the first answer.
pub async fn list_active(store: &Store, after: i64) -> Result<Vec<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- bulks_alive
        SELECT id FROM sexton.bulks b
        WHERE state IN ('preparing', 'running')
          AND (state = 'preparing' OR verify IS DISTINCT FROM 'command'
               OR EXISTS (SELECT FROM sexton.bulk_items WHERE bulk_id = b.id AND state = 'waiting')
               OR NOT EXISTS (SELECT FROM sexton.bulk_items WHERE bulk_id = b.id AND state = 'unasked'))
        ORDER BY id <= $1, id LIMIT $2",
        after,
        MAX_ACTIVE_BULKS as i64
    )
    .fetch_all(store.with_timeout())
    .await?)
}

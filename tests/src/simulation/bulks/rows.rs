//! Bulks, their items and their questions, as the database has them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::bulk::{BulkKind, BulkState};
use sexton_model::id::ExecutionId;
use sqlx::PgPool;
use uuid::Uuid;

use super::super::stop::Stop;

#[derive(sqlx::FromRow)]
struct Columns {
    id: i64,
    kind: String,
    verify: Option<String>,
    rate: Option<String>,
    canary: Option<i32>,
    state: String,
    previewed_at: DateTime<Utc>,
    canary_passed: bool,
    selected: i64,
    done: i64,
    refused: i64,
    resolved: i64,
    left_alone: i64,
    ended_at: Option<DateTime<Utc>>,
}

/// A row of `bulks`, with its items and questions.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Bulk {
    pub(in crate::simulation) id: i64,
    pub(super) kind: BulkKind,
    pub(super) verify: Option<String>,
    pub(super) is_paced: bool,
    pub(super) canary: Option<usize>,
    pub(in crate::simulation) state: BulkState,
    pub(super) previewed_at: DateTime<Utc>,
    pub(super) canary_passed: bool,
    /// The numbers selected, done, refused, resolved and left alone, as the row counts them.
    pub(super) counted: [i64; 5],
    pub(super) ended_at: Option<DateTime<Utc>>,
    /// By ordinal.
    pub(super) items: BTreeMap<i64, Item>,
    /// By the ordinal of the item.
    pub(super) questions: BTreeMap<i64, Question>,
}

/// A row of `bulk_items`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) execution: ExecutionId,
    pub(super) seen: i32,
    pub(super) state: String,
}

/// A row of `bulk_questions`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub(super) id: ExecutionId,
    pub(super) answer: Option<String>,
}

/// All bulks, in the order of their requests.
pub(in crate::simulation) type Bulks = BTreeMap<i64, Bulk>;

impl Bulk {
    /// Whether this answers for its items first.
    pub(super) fn asks(&self, whom: &str) -> bool {
        self.verify.as_deref() == Some(whom)
    }

    /// The items without an answer.
    pub(super) fn unasked(&self) -> impl Iterator<Item = (i64, ExecutionId)> {
        let open = self.items.iter().filter(|(_, item)| item.state == "unasked");
        open.map(|(ordinal, item)| (*ordinal, item.execution))
    }

    /// How many items are in this state.
    pub(super) fn count(&self, state: &str) -> usize {
        self.items.values().filter(|item| item.state == state).count()
    }

    /// The questions whose answer no scheduler has read.
    pub(super) fn unheard(&self) -> impl Iterator<Item = ExecutionId> {
        self.questions.values().filter(|it| it.answer.is_none()).map(|it| it.id)
    }
}

/// Reads all bulks.
pub(in crate::simulation) async fn read(pool: &PgPool) -> Result<Bulks, Stop> {
    type Row = (i64, i64, Uuid, i32, String, Option<Uuid>, Option<String>);
    let columns: Vec<Columns> = sqlx::query_as(
        "SELECT id, kind, verify, rate, canary, state, previewed_at, canary_passed, selected, done, refused,
                resolved, left_alone, ended_at
         FROM sexton.bulks",
    )
    .fetch_all(pool)
    .await?;
    let mut bulks = Bulks::new();
    for columns in columns {
        let id = columns.id;
        bulks.insert(id, columns.bulk()?);
    }
    let items: Vec<Row> = sqlx::query_as(
        "SELECT i.bulk_id, i.ordinal, i.execution_id, i.seen, i.state, q.question, q.answer
         FROM sexton.bulk_items i LEFT JOIN sexton.bulk_questions q USING (bulk_id, ordinal)",
    )
    .fetch_all(pool)
    .await?;
    for (id, ordinal, execution, seen, state, question, answer) in items {
        let Some(bulk) = bulks.get_mut(&id) else { continue };
        let execution = ExecutionId::new(execution);
        bulk.items.insert(ordinal, Item { execution, seen, state });
        if let Some(question) = question {
            let question = Question { id: ExecutionId::new(question), answer };
            bulk.questions.insert(ordinal, question);
        }
    }
    Ok(bulks)
}

impl Columns {
    fn bulk(self) -> Result<Bulk, Stop> {
        let (kind, state) = (BulkKind::parse(&self.kind), BulkState::parse(&self.state));
        let (Some(kind), Some(state)) = (kind, state) else {
            return Err(Stop::broken(format!("a bulk to {} is {}", self.kind, self.state)));
        };
        Ok(Bulk {
            id: self.id,
            kind,
            verify: self.verify,
            is_paced: self.rate.is_some(),
            canary: self.canary.map(|size| size as usize),
            state,
            previewed_at: self.previewed_at,
            canary_passed: self.canary_passed,
            counted: [self.selected, self.done, self.refused, self.resolved, self.left_alone],
            ended_at: self.ended_at,
            items: BTreeMap::new(),
            questions: BTreeMap::new(),
        })
    }
}

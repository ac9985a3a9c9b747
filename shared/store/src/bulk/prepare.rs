//! Writes a bulk's items, batch by batch.

use serde::de::DeserializeOwned;
use serde_json::Value;
use sexton_model::bulk::{BulkKind, BulkState};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::create::initial_item_state;
use super::select;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::{Now, Store, StoreError};

/// The result of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// Number of items written.
    pub selected: usize,
    /// Whether it was the last: the bulk runs now, or is done if it has no items.
    pub complete: bool,
}

struct SelectedItems {
    selected: i64,
    complete: bool,
}

/// Selects the next `limit` items of a bulk that is being prepared; `None`: it is prepared, or another scheduler
/// holds it. The page is read without a lock, and written only if no other scheduler has written it since. A crash
/// before the commit leaves the batch to the next call.
pub async fn prepare(
    store: &Store,
    id: i64,
    limit: i64,
    now: Now,
) -> Result<Option<Prepared>, StoreError> {
    let row = sqlx::query!(
        "-- bulk_to_prepare
        SELECT kind, selector, previewed_at, verify, cursor_at, cursor_id, cursor_item FROM sexton.bulks
        WHERE id = $1 AND state = 'preparing'",
        id
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let kind = parse_column("bulks.kind", &row.kind, BulkKind::parse)?;
    let first = initial_item_state(row.verify.as_deref());
    let source_bulk = row.selector.get("bulk").and_then(Value::as_i64);
    let found = if source_bulk.is_some() {
        select::Page::default()
    } else {
        let (filter, until) = (&row.selector["filter"], row.previewed_at);
        match kind {
            BulkKind::Cancel => {
                let filter: ExecutionFilter = parse_filter(filter)?;
                select::cancellable_page(store, &filter, until, row.cursor_id, limit).await?
            }
            BulkKind::Requeue | BulkKind::Discard | BulkKind::Restore => {
                let filter: FailureFilter = parse_filter(filter)?;
                let after = row.cursor_at.zip(row.cursor_id);
                select::page(store, &filter, until, after, limit).await?
            }
        }
    };
    let mut tx = store.begin().await?;
    let locked = sqlx::query_scalar!(
        "-- lock_bulk_to_prepare
        SELECT id FROM sexton.bulks
        WHERE id = $1 AND state = 'preparing' AND cursor_id IS NOT DISTINCT FROM $2
          AND cursor_item IS NOT DISTINCT FROM $3
        FOR NO KEY UPDATE SKIP LOCKED",
        id,
        row.cursor_id,
        row.cursor_item
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    if locked.is_none() {
        return Ok(None);
    }
    let page = match source_bulk {
        Some(source_bulk) => select_from_bulk(&mut tx, id, source_bulk, first, limit).await?,
        None => select_by_filter(&mut tx, id, kind, &found, first).await?,
    };
    if page.complete {
        mark_prepared(&mut tx, id, now).await?;
    }
    commit(tx).await?;
    Ok(Some(Prepared { selected: page.selected as usize, complete: page.complete }))
}

/// Refuses a filter of a later version, of which this program would drop conditions and select too much.
fn parse_filter<F: DeserializeOwned>(filter: &Value) -> Result<F, StoreError> {
    serde_json::from_value(filter.clone()).map_err(|_| StoreError::Inconsistent {
        place: "bulks.selector",
        value: filter.to_string(),
    })
}

async fn mark_prepared(connection: &mut PgConnection, id: i64, now: Now) -> Result<(), StoreError> {
    sqlx::query!(
        "-- bulk_is_prepared
        UPDATE sexton.bulks SET prepared_at = coalesce($2, now()),
            state = CASE WHEN selected = 0 THEN $3 ELSE $4 END,
            ended_at = CASE WHEN selected = 0 THEN coalesce($2, now()) END
        WHERE id = $1",
        id,
        now,
        BulkState::Done.as_str(),
        BulkState::Running.as_str()
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Selects the executions on which the bulk `other` acted, in its order.
async fn select_from_bulk(
    connection: &mut PgConnection,
    id: i64,
    source_bulk: i64,
    first: &str,
    limit: i64,
) -> Result<SelectedItems, StoreError> {
    let row = sqlx::query!(
        r#"-- items_of_bulk
        WITH p AS MATERIALIZED (
            SELECT o.ordinal, o.execution_id, o.seen, o.state FROM sexton.bulk_items o
            WHERE o.bulk_id = $2 AND o.ordinal > coalesce((SELECT cursor_item FROM sexton.bulks WHERE id = $1), 0)
            ORDER BY o.ordinal LIMIT $4),
        i AS (
            INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
            SELECT $1, b.selected + row_number() OVER (ORDER BY p.ordinal), p.execution_id, p.seen, $3
            FROM p, sexton.bulks b WHERE b.id = $1 AND p.state = 'done' RETURNING 1),
        u AS (
            UPDATE sexton.bulks SET selected = selected + (SELECT count(*) FROM i),
                cursor_item = coalesce((SELECT max(ordinal) FROM p), cursor_item)
            WHERE id = $1)
        SELECT (SELECT count(*) FROM p) AS "read!", (SELECT count(*) FROM i) AS "selected!""#,
        id,
        source_bulk,
        first,
        limit
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    Ok(SelectedItems { selected: row.selected, complete: row.read < limit })
}

/// Selects by the filter, at the current attempt numbers; executions that have moved on since are left out.
async fn select_by_filter(
    connection: &mut PgConnection,
    id: i64,
    kind: BulkKind,
    found: &select::Page,
    first: &str,
) -> Result<SelectedItems, StoreError> {
    let ids: Vec<Uuid> = found.places.iter().map(|place| place.1).collect();
    let states: Vec<String> = State::ALL
        .into_iter()
        .filter(|state| kind.acts_on(*state))
        .map(|state| state.as_str().to_owned())
        .collect();
    let selected = sqlx::query_scalar!(
        r#"-- items_of_filter
        WITH i AS (
            INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
            SELECT $1, b.selected + row_number() OVER (ORDER BY p.n), e.id, e.attempt, $3
            FROM sexton.bulks b, unnest($4::uuid[]) WITH ORDINALITY AS p (id, n)
            JOIN sexton.executions e ON e.id = p.id AND e.state = ANY ($2)
            WHERE b.id = $1 AND coalesce(e.finished_at, e.claimed_at) <= b.previewed_at RETURNING 1),
        u AS (
            UPDATE sexton.bulks SET selected = selected + (SELECT count(*) FROM i),
                cursor_at = coalesce($5, cursor_at), cursor_id = coalesce($6, cursor_id)
            WHERE id = $1)
        SELECT count(*) AS "selected!" FROM i"#,
        id,
        &states,
        first,
        &ids,
        found.last.map(|place| place.0),
        found.last.map(|place| place.1)
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    Ok(SelectedItems { selected, complete: found.complete })
}

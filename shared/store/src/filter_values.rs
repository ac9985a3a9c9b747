//! The values of filters in statements, and the transaction in which statements are planned for them.

use std::collections::BTreeMap;

use serde_json::json;
use sexton_model::failures::text_query;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::connection::client_timeout::WithTimeout;
use crate::{Store, StoreError};

/// Returns a filter's text as the database's query.
pub(crate) fn search_words(text: &str) -> Result<String, StoreError> {
    // Without words it would match everything.
    text_query(text).ok_or_else(|| StoreError::Inconsistent {
        place: "the filter's text",
        value: text.chars().take(80).collect(),
    })
}

/// Returns the jobs with these labels, even deleted ones, whose names begin with `prefix`; `None`: neither is given.
pub(crate) async fn find_jobs(
    store: &Store,
    labels: &BTreeMap<String, String>,
    prefix: Option<&str>,
) -> Result<Option<Vec<Uuid>>, StoreError> {
    if labels.is_empty() && prefix.is_none() {
        return Ok(None);
    }
    let labels = json!(labels);
    let ids = sqlx::query_scalar!(
        "-- jobs_with_labels
        SELECT id FROM sexton.jobs
        WHERE labels @> $1 AND ($2::text IS NULL OR starts_with(coalesce(deleted_name, name), $2))",
        labels,
        prefix
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(Some(ids))
}

/// Begins a read-only transaction whose statements are planned for their values. A drop ends it.
pub(crate) async fn begin_with_custom_plans(
    store: &Store,
) -> Result<Transaction<'static, Postgres>, StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("SET LOCAL plan_cache_mode = force_custom_plan")
        .execute(WithTimeout(&mut *tx))
        .await?;
    Ok(tx)
}

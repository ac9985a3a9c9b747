//! The rules by which actions wait.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sexton_model::approval::{MAX_RULES, Rule};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::{Now, Store, StoreError};

/// A rule by which actions wait for further people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalRule {
    /// Its name.
    pub name: String,
    /// Only for jobs with this label; `None`: for all jobs.
    pub label: Option<String>,
    /// The value that the label has then.
    pub label_value: Option<String>,
    /// How many people it takes, the one who requests among them.
    pub people: i16,
    /// Requeues by a bulk, and backfills, wait if they have more executions than this; edits and discards always.
    pub above: i32,
    /// When it was set last.
    pub set_at: DateTime<Utc>,
    /// Who set it last.
    pub set_by: String,
}

impl ApprovalRule {
    /// Returns what decides.
    pub fn to_model(&self) -> Rule {
        Rule {
            name: self.name.clone(),
            label: self.label.clone().zip(self.label_value.clone()),
            people: self.people.unsigned_abs(),
            above: self.above.unsigned_abs().into(),
        }
    }

    fn to_audit(&self) -> Value {
        let Self { name, label, label_value, people, above, .. } = self;
        json!({"name": name, "label": label, "label_value": label_value, "people": people, "above": above})
    }
}

/// A rule to be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewRule<'a> {
    /// Its name.
    pub name: &'a str,
    /// The label and the value that jobs have; `None`: for all jobs.
    pub label: Option<(&'a str, &'a str)>,
    /// [`ApprovalRule::people`].
    pub people: i16,
    /// [`ApprovalRule::above`].
    pub above: i32,
}

/// What became of a rule to be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleChange {
    /// It holds.
    Set(ApprovalRule),
    /// There are [`MAX_RULES`] already.
    TooMany,
}

/// Lists all rules by name.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_rules(store: &Store) -> Result<Vec<ApprovalRule>, StoreError> {
    Ok(sqlx::query_as!(
        ApprovalRule,
        "-- list_approval_rules
        SELECT name, label, label_value, people, above, set_at, set_by FROM sexton.approval_rules ORDER BY name"
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Sets a rule, in place of one of the same name, and records that in the audit.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn set_rule(
    store: &Store,
    rule: NewRule<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<RuleChange, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let before = sqlx::query_as!(
        ApprovalRule,
        "-- lock_approval_rule
        SELECT name, label, label_value, people, above, set_at, set_by FROM sexton.approval_rules
        WHERE name = $1 FOR UPDATE",
        rule.name
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let count = sqlx::query_scalar!(
        r#"-- count_approval_rules
        SELECT count(*) AS "count!" FROM sexton.approval_rules"#
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if before.is_none() && count >= i64::from(MAX_RULES) {
        return Ok(RuleChange::TooMany);
    }
    let set = sqlx::query_as!(
        ApprovalRule,
        "-- set_approval_rule
        INSERT INTO sexton.approval_rules (name, label, label_value, people, above, set_at, set_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (name) DO UPDATE SET label = excluded.label, label_value = excluded.label_value,
            people = excluded.people, above = excluded.above, set_at = excluded.set_at, set_by = excluded.set_by
        RETURNING name, label, label_value, people, above, set_at, set_by",
        rule.name,
        rule.label.map(|(label, _)| label),
        rule.label.map(|(_, value)| value),
        rule.people,
        rule.above,
        at,
        by.actor
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    let change = (before.map(|rule| rule.to_audit()), Some(set.to_audit()));
    record_jobless_action(&mut tx, "set_approval_rule", change, by, at).await?;
    commit(tx).await?;
    Ok(RuleChange::Set(set))
}

/// Deletes a rule, and records that in the audit. Returns whether there was one.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn delete_rule(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let before = sqlx::query_as!(
        ApprovalRule,
        "-- delete_approval_rule
        DELETE FROM sexton.approval_rules WHERE name = $1
        RETURNING name, label, label_value, people, above, set_at, set_by",
        name
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let Some(before) = before else { return Ok(false) };
    let change = (Some(before.to_audit()), None);
    record_jobless_action(&mut tx, "delete_approval_rule", change, by, at).await?;
    commit(tx).await?;
    Ok(true)
}

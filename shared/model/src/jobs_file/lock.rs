//! Parses the fields `lock_key`, `lock` and `on_locked`.

use super::fields::Fields;
use super::limits::{LOCK_AT_LEAST, LOCK_AT_MOST};
use crate::duration;
use crate::job::{MAX_LOCK_ROW_BYTES, OnLocked, RowLock};

/// The three fields.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) key: Option<i64>,
    pub(super) row: Option<RowLock>,
    pub(super) on_locked: OnLocked,
}

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Lock {
    let key = fields.integer("lock_key", i64::MIN..=i64::MAX);
    let row = row(fields);
    let on_locked = fields.choice("on_locked", OnLocked::parse, &["skip", "wait"], &[]);
    if fields.has("lock_key") && fields.has("lock") {
        fields
            .problem("lock", "stands beside lock_key; a job holds one lock, so remove one of them");
    }
    if fields.has("on_locked") && !fields.has("lock_key") && !fields.has("lock") {
        fields.problem("on_locked", "has a meaning only with lock_key or lock");
    }
    Lock { key, row, on_locked: on_locked.unwrap_or_default() }
}

fn row(fields: &mut Fields<'_, '_, '_>) -> Option<RowLock> {
    let mut inside = fields.inside("lock", "lock.")?;
    for needed in ["row", "at_most"] {
        if !inside.has(needed) {
            inside.problem(needed, "is missing; write lock = { row = \"name\", at_most = \"1h\" }");
        }
    }
    let name = inside.text("row", MAX_LOCK_ROW_BYTES).map(str::to_owned);
    if name.as_ref().is_some_and(String::is_empty) {
        inside.problem("row", "is empty; write the name under which other services lock");
    }
    let at_most = inside.duration("at_most", LOCK_AT_MOST);
    let at_least = inside.duration("at_least", LOCK_AT_LEAST).unwrap_or_default();
    if let Some(at_most) = at_most
        && at_least > at_most
    {
        let [least, most] = [at_least, at_most].map(duration::format);
        inside.problem("at_least", format!("{least} is longer than at_most = {most}"));
    }
    inside.report_unknown_fields(&["row", "at_most", "at_least"], &[], &[]);
    Some(RowLock { name: name?, at_most: at_most?, at_least })
}

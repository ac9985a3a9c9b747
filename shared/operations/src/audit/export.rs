//! Exports of the audit. Each ends with what it contains, and the head of the audit's chain.

use ring::digest::{Context, SHA256};
use serde::Serialize;
use sexton_store::Store;
use sexton_store::operator::{ActionFilter, PageStart};

use super::chain::{self, AuditHead};
use super::{list, wait_until_settled};
use crate::digest::hex;
use crate::error::OperationError;
use crate::text::json_line;

/// Numbers of actions that a part looks through. Each part does so while the audit may be written, and where a filter lets few actions
/// pass, one statement would read all of the audit for it.
const PART_NUMBERS: i64 = 50_000;

/// The last line of an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExportEnd {
    /// The number behind which a later export continues.
    pub through: i64,
    /// Whether it has all that match, up to the newest action when it began; otherwise a later export has the others.
    pub complete: bool,
    /// Actions of this export.
    pub actions: u64,
    /// SHA-256 of its lines before this one, each with its line feed.
    pub sha256: String,
    /// The head of the chain after the last action was read.
    #[serde(flatten)]
    pub head: AuditHead,
}

/// Counts and digests the lines of an export.
#[derive(Clone)]
pub struct ExportDigest {
    context: Context,
    actions: u64,
}

impl Default for ExportDigest {
    fn default() -> Self {
        Self { context: Context::new(&SHA256), actions: 0 }
    }
}

impl ExportDigest {
    /// Adds the line of an action, without its line feed.
    pub fn add(&mut self, line: &str) {
        self.context.update(line.as_bytes());
        self.context.update(b"\n");
        self.actions += 1;
    }

    /// Returns the end of an export that has every action up to `through`, and is `complete` if there was none behind it.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn finish(
        self,
        store: &Store,
        through: i64,
        complete: bool,
    ) -> Result<ExportEnd, OperationError> {
        let sha256 = hex(self.context.finish().as_ref());
        let head = chain::head(store).await?;
        Ok(ExportEnd { through, complete, actions: self.actions, sha256, head })
    }
}

/// Exports at most `limit` actions behind the one with the number `after`, the oldest first, as lines of JSON. Values that look like
/// secrets are masked. The last line is the [`ExportEnd`]; its `through` is the `after` of the next part, and a part that is `complete` is the
/// last one for now. A part looks through at most 50,000 numbers, so others may have fewer than `limit` actions, or none.
///
/// # Errors
///
/// Those of the database.
pub async fn export_part(
    store: &Store,
    filter: &ActionFilter,
    after: i64,
    limit: i64,
) -> Result<String, OperationError> {
    let settled = wait_until_settled(store, after, PART_NUMBERS).await?;
    let start = PageStart::After { after, through: settled.through };
    let page = list(store, filter, start, limit, false).await?;
    let (mut text, mut digest) = (String::new(), ExportDigest::default());
    for action in &page {
        let line = line_of(action)?;
        digest.add(&line);
        text.push_str(&line);
        text.push('\n');
    }
    let last = page.last().filter(|_| page.len() as i64 >= limit);
    // A filter may leave out the last ones.
    let through = last.map_or(after.max(settled.through), |last| last.id);
    let complete = settled.is_whole && through >= settled.through;
    let end = digest.finish(store, through, complete).await?;
    text.push_str(&line_of(&end)?);
    text.push('\n');
    Ok(text)
}

fn line_of(document: &impl Serialize) -> Result<String, OperationError> {
    json_line(document)
        .map_err(|error| OperationError::Failed(format!("the audit is no JSON: {error}")))
}

//! The end of an export: what it contains, and the head of the audit's chain.

use ring::digest::{Context, SHA256};
use serde::Serialize;
use sexton_store::Store;

use super::chain::{self, AuditHead};
use crate::digest::hex;
use crate::error::OperationError;

/// The last line of an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExportEnd {
    /// The number behind which a later export continues.
    pub through: i64,
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

    /// Returns the end of an export that has every action up to `through`.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn finish(self, store: &Store, through: i64) -> Result<ExportEnd, OperationError> {
        let sha256 = hex(self.context.finish().as_ref());
        let head = chain::head(store).await?;
        Ok(ExportEnd { through, actions: self.actions, sha256, head })
    }
}

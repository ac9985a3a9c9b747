//! A backfill that others have approved: each batch checks that it still may.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::BackfillError;
use crate::approved::{Claim, renew};

/// What a backfill was approved for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApprovedBackfill {
    /// The right to carry the request out.
    pub claim: Claim,
    /// The job's id.
    pub job: Uuid,
    /// The job's revision.
    pub revision: i32,
}

impl ApprovedBackfill {
    /// Checks, until the transaction ends, that the job is as it was when the backfill was requested, and that this process carries the request out.
    pub(super) async fn check(
        self,
        connection: &mut PgConnection,
        name: &str,
        job: (Uuid, i32),
        at: DateTime<Utc>,
    ) -> Result<(), BackfillError> {
        if job != (self.job, self.revision) {
            return Err(BackfillError::Changed(name.to_owned()));
        }
        if renew(connection, self.claim, at).await? {
            return Ok(());
        }
        Err(BackfillError::NotClaimed(self.claim.request))
    }
}

//! Where a job's executions are reported to, as the database has it.

use sexton_model::heartbeat::JobHeartbeat;

use super::Job;
use crate::StoreError;

impl Job {
    /// Returns where its executions are reported to.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`] when the row was written by hand or by another version.
    pub fn heartbeat(&self) -> Result<Option<JobHeartbeat>, StoreError> {
        let heartbeat = self.heartbeat.clone().map(serde_json::from_value).transpose();
        heartbeat.map_err(|error| StoreError::Inconsistent {
            place: "jobs.heartbeat",
            value: format!("{error} (job {})", self.name),
        })
    }
}

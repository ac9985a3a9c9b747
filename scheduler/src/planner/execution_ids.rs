//! Creates ids of executions.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use uuid::{NoContext, Timestamp, Uuid};

/// Creates the id of an execution claimed at `at`. Retention finds old rows by their ids, so `at` is the
/// instant of the claim by the database's clock, not this host's.
pub(crate) fn execution_id(at: DateTime<Utc>) -> ExecutionId {
    let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
    let timestamp = Timestamp::from_unix(NoContext, seconds, at.timestamp_subsec_nanos());
    ExecutionId::new(Uuid::new_v7(timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_their_instants() {
        let at: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let later = at + chrono::Duration::milliseconds(1);
        for _ in 0..100 {
            assert!(execution_id(at) < execution_id(later));
            assert_eq!(execution_id(at).get().get_version_num(), 7);
        }
    }
}

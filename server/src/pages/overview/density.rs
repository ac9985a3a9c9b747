//! Keeps the count of the day's firings for a while, since it costs more than the rest of the page and changes slowly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sexton_operations::error::OperationError;
use sexton_operations::jobs::density::{self, FiringDensity};
use sexton_store::Store;
use tokio::sync::Mutex;

/// How long a count is shown.
const MAX_AGE: Duration = Duration::from_mins(2);

/// A count, and when it was made.
#[derive(Debug)]
struct Counted {
    at: Instant,
    density: Arc<FiringDensity>,
}

/// The last count. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct DensityCache {
    last: Arc<Mutex<Option<Counted>>>,
}

impl DensityCache {
    /// Returns a count that is at most [`MAX_AGE`] old. Visitors that come meanwhile wait for the same one.
    pub(super) async fn get(
        &self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<Arc<FiringDensity>, OperationError> {
        let mut last = self.last.lock().await;
        if let Some(counted) = &*last
            && counted.at.elapsed() < MAX_AGE
        {
            return Ok(Arc::clone(&counted.density));
        }
        let density = Arc::new(density::count(store, now).await?);
        *last = Some(Counted { at: Instant::now(), density: Arc::clone(&density) });
        Ok(density)
    }
}

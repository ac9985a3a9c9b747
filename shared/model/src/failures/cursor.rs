//! The position behind which a page begins.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use uuid::Uuid;

/// The order of a list: by the time of the failure (or discard), then by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Order {
    /// The latest failure first.
    #[default]
    Newest,
    /// The oldest failure first.
    Oldest,
}

/// The position of a page's last row; the next page begins behind it. So rows that come and go meanwhile neither move
/// nor repeat the others: one that fails again is a new failure, at its new position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCursor {
    /// The order it belongs to.
    pub order: Order,
    /// When the row failed, in whole microseconds, as the database keeps it.
    pub at: DateTime<Utc>,
    /// The execution.
    pub id: Uuid,
}

//! What has become of a notification.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// What has become of a notification.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum NotificationState {
    /// To be sent, or tried again.
    Pending,
    /// Accepted by the receiver.
    Sent,
    /// Given up after three days.
    Parked,
    /// Not sent, since nobody needed it any more.
    Dropped,
}

text_enum!(NotificationState {
    Pending => "pending", Sent => "sent", Parked => "parked", Dropped => "dropped",
});

//! Watches jobs and the platform, opens incidents, and sends what is to be sent about them; pings outside watchers.

pub mod check_monitors;
pub mod dead_man;
pub mod delivery;
mod delivery_round;
pub mod heartbeat_delivery;
pub mod job_monitors;
pub mod monitor_round;
pub mod platform_cause;
pub mod platform_monitors;

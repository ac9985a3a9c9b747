//! Anomalies as people are shown them.

use chrono::{DateTime, Utc};
use sexton_model::cron::Anomaly;
use sexton_model::zone::Zone;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::instant;

/// The wall times concerned, short.
pub(in crate::commands) fn wall(anomaly: &Anomaly) -> String {
    let first = anomaly.first_wall.format("%F %T");
    match anomaly.walls {
        1 => first.to_string(),
        count => format!("{first} (+{})", count - 1),
    }
}

/// A line each.
pub(super) fn render_anomalies(
    anomalies: &[Anomaly],
    zone: Zone,
    until: DateTime<Utc>,
    session: &Session,
) -> Result<(), Failure> {
    if anomalies.is_empty() {
        let text = format!("No change of the clocks until {} touches it.", instant(until));
        return session.out.print(text);
    }
    session.out.print("\nChanges of the clocks")?;
    anomalies.iter().try_for_each(|one| {
        session.out.print(format!("{:<10}  {}", one.kind.as_str(), one.describe(zone)))
    })
}

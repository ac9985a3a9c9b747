//! The supervisor of a link: connects, declares, waits for the end and starts again.
//!
//! It ends only when the link is closed or the topology differs. It alone logs that the broker is unreachable.

use std::sync::Arc;
use std::time::Duration;

use lapin::Connection;
use sexton_model::outage::{FailureLine, Outage};
use tokio::time::{Instant, timeout};

use crate::link::{Current, LinkSettings, LinkState, Shared};
use crate::reconnect::ReconnectPauses;
use crate::session::{self, Connector};
use crate::topology::{self, TopologyError};

/// After a connection that lasted this long, the next pause is short again.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Runs the supervisor's loop: connect, serve, start again.
pub(crate) async fn supervise(shared: Arc<Shared>) {
    let mut outage = Outage::default();
    let mut pauses = ReconnectPauses::new();
    let mut connector = Connector::default();
    let mut generation = 0;
    let stopped = shared.stop.clone().cancelled_owned();
    tokio::pin!(stopped);
    loop {
        let opened = tokio::select! {
            () = &mut stopped => break,
            opened = connect(&shared, &mut connector) => opened,
        };
        let failure = match opened {
            Ok(connection) => {
                generation += 1;
                log_connected(&shared, &mut outage, generation);
                let since = Instant::now();
                let failure = serve(&shared, Arc::new(connection), generation).await;
                if since.elapsed() >= STABLE_AFTER {
                    pauses.reset();
                }
                failure
            }
            Err(Failure::Fatal(error)) => {
                shared.state.send_replace(LinkState::Fatal(error));
                return;
            }
            Err(Failure::Temporary(reason)) => Some(reason),
        };
        let Some(failure) = failure else { break };
        if connector.has_timed_out() {
            pauses.reset();
        }
        report_disconnected(&shared, &mut outage, &failure);
        tokio::select! {
            () = &mut stopped => break,
            () = tokio::time::sleep(pauses.next()) => {}
        }
    }
    shared.set_state(LinkState::Closed);
}

enum Failure {
    Fatal(TopologyError),
    Temporary(String),
}

async fn connect(shared: &Shared, connector: &mut Connector) -> Result<Connection, Failure> {
    let LinkSettings { endpoint, name, namespace, timeouts, .. } = &shared.settings;
    let connection = connector.open(endpoint, name, timeouts).await.map_err(Failure::Temporary)?;
    if !shared.declares {
        return Ok(connection);
    }
    let declared = async {
        let opening = timeout(timeouts.step, connection.create_channel()).await;
        let channel = match opening {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return Err(Failure::Temporary(error.to_string())),
            Err(_) => return Err(Failure::Temporary("no channel within the limit".to_owned())),
        };
        match topology::declare(&channel, namespace, &shared.pools(), timeouts.step).await {
            Ok(()) => Ok(()),
            Err(error @ TopologyError::Mismatch { .. }) => Err(Failure::Fatal(error)),
            Err(error @ TopologyError::Broker { .. }) => Err(Failure::Temporary(error.to_string())),
        }
    }
    .await;
    if let Err(failure) = declared {
        session::close(&connection, timeouts.close).await;
        return Err(failure);
    }
    Ok(connection)
}

/// Serves a connection until it is lost (returns why) or the link is closed (`None`).
async fn serve(shared: &Shared, connection: Arc<Connection>, generation: u64) -> Option<String> {
    shared.set(Some(Current { generation, connection: Arc::clone(&connection) }));
    let failure = tokio::select! {
        () = shared.stop.cancelled() => None,
        reason = session::wait_until_lost(&connection, &shared.settings.name) => Some(reason),
        reason = shared.suspected(generation) => Some(reason),
    };
    shared.set(None);
    session::close(&connection, shared.settings.timeouts.close).await;
    failure
}

fn log_connected(shared: &Shared, outage: &mut Outage, generation: u64) {
    let LinkSettings { endpoint, name, .. } = &shared.settings;
    // Each outage is logged from its beginning: the pauses between connections already limit the lines.
    let past = std::mem::take(outage).record_recovery(Instant::now().into_std());
    let down_s = past.map_or(0.0, |past| past.lasted.as_secs_f64());
    tracing::info!(
        link.name = name,
        link.generation = generation,
        down_s,
        "connected to the broker at {endpoint}"
    );
}

fn report_disconnected(shared: &Shared, outage: &mut Outage, failure: &str) {
    let name = &shared.settings.name;
    shared.set_state(LinkState::Down { reason: Some(failure.to_owned()) });
    match outage.record_failure(Instant::now().into_std()) {
        Some(FailureLine::Began) => {
            tracing::warn!(link.name = name, "no connection to the broker: {failure}");
        }
        Some(FailureLine::Continues { lasting, .. }) => tracing::warn!(
            link.name = name,
            down_s = lasting.as_secs(),
            "still no connection to the broker, still trying: {failure}"
        ),
        None => {}
    }
}

//! One connection, from handshake to loss. Whether to open another is the link's business.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::{Connection, ConnectionProperties, ErrorKind, Event};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::endpoint::Endpoint;
use crate::frame_filter;
use crate::liveness_probe::wait_until_responsive;
use crate::timeouts::Timeouts;

/// How often the session polls the connection's own status, in case it missed an event.
const STATUS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

const ACCESS_REFUSED: u16 = 403;
const NOT_ALLOWED: u16 = 530;

/// An attempt without an answer for this long gets a second one beside it, because its first packets may be lost.
const SECOND_ATTEMPT_DELAY: Duration = Duration::from_secs(2);

/// The way to one broker: opens connections, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Connector {
    /// Whether the last attempt got no answer.
    timed_out: bool,
}

impl Connector {
    /// Opens a connection, within its time limit.
    ///
    /// The client library's own recovery stays off: it hides lost deliveries and hangs on a channel error. Every
    /// channel of a lost connection returns an error.
    ///
    /// # Errors
    ///
    /// A sentence that names what to check; never with the password.
    pub(crate) async fn open(
        &mut self,
        endpoint: &Endpoint,
        name: &str,
        timeouts: &Timeouts,
    ) -> Result<Connection, String> {
        let timeout_message = || {
            format!(
                "no answer from {endpoint} within {} s; check host and port in AMQP_URL",
                timeouts.connect.as_secs()
            )
        };
        if self.timed_out
            && timeout(timeouts.connect, wait_until_responsive(endpoint)).await.is_err()
        {
            return Err(timeout_message());
        }
        let opened = timeout(timeouts.connect, open_with_second_attempt(endpoint, name)).await;
        self.timed_out = opened.is_err();
        match opened {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(explain(endpoint, &error)),
            Err(_) => Err(timeout_message()),
        }
    }

    /// Returns whether the last attempt timed out. The next then needs no pause.
    pub(crate) const fn has_timed_out(&self) -> bool {
        self.timed_out
    }
}

/// Opens a connection, and a second one if the first gets no answer while a new TCP connection does.
/// Both continue, because the broker may just be slow.
async fn open_with_second_attempt(endpoint: &Endpoint, name: &str) -> lapin::Result<Connection> {
    let open = || {
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        frame_filter::connect(endpoint.uri(), properties)
    };
    let second = async {
        sleep(SECOND_ATTEMPT_DELAY).await;
        wait_until_responsive(endpoint).await;
        open().await
    };
    tokio::select! {
        first = open() => first,
        second = second => second,
    }
}

fn explain(endpoint: &Endpoint, error: &lapin::Error) -> String {
    let code = match error.kind() {
        ErrorKind::ProtocolError(complaint) => complaint.get_id(),
        _ => 0,
    };
    match code {
        ACCESS_REFUSED => format!(
            "{endpoint} refuses user `{}`; check user and password in AMQP_URL",
            endpoint.user()
        ),
        NOT_ALLOWED => format!(
            "{endpoint} has no vhost `{}` for user `{}`; check the path of AMQP_URL (%2f is the \
             vhost `/`) and the user's permissions",
            endpoint.vhost(),
            endpoint.user()
        ),
        _ => format!(
            "{endpoint} cannot be reached ({error}); check AMQP_URL if the broker should be there"
        ),
    }
}

/// Waits until the connection is lost; returns why. Logs the broker's alarms meanwhile.
pub(crate) async fn wait_until_lost(connection: &Connection, name: &str) -> String {
    let mut events = pin!(connection.events_listener());
    let mut status_checks = interval(STATUS_CHECK_INTERVAL);
    status_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => match event {
                // The errors of single channels come here too; their users handle them.
                Some(Event::Error(error)) if error.is_amqp_soft_error() => {}
                Some(Event::Error(error)) => return error.to_string(),
                Some(Event::ConnectionBlocked(reason)) => tracing::warn!(
                    link.name = name, reason,
                    "the broker has stopped taking messages: it is short of memory or disk"
                ),
                Some(Event::ConnectionUnblocked) => {
                    tracing::info!(link.name = name, "the broker takes messages again");
                }
                Some(_) => {}
                None => return "the connection has ended".to_owned(),
            },
            _ = status_checks.tick() => if !connection.status().connected() {
                return "the connection has ended".to_owned();
            },
        }
    }
}

/// Closes politely if that is still possible, within `limit`.
pub(crate) async fn close(connection: &Connection, limit: Duration) {
    if connection.status().connected() {
        let closing = connection.close(200, "done".into());
        if !matches!(timeout(limit, closing).await, Ok(Ok(()))) {
            tracing::debug!("the connection could not be closed politely");
        }
    }
}

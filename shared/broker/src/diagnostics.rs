//! Examines the broker: missing and mismatched objects, and the user's permissions.
//!
//! It creates nothing and consumes nothing. A passive declare shows for each name whether it exists. Arguments cannot
//! be read over AMQP; the broker compares the declare of an existing object and changes nothing, and its error names
//! the argument. (A queue deleted between the two would be created correctly.) A message for a queue that does not
//! exist, which comes back, shows whether the user may publish; a get from an empty queue shows whether it may
//! consume.
//!
//! Bindings, feature flags, alarms, and other users' permissions cannot be seen this way.

mod greeting;

use std::collections::BTreeMap;
use std::time::Duration;

use lapin::options::{
    BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ErrorKind, ExchangeKind};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_model::pool::PoolName;
use tokio::time::{Instant, timeout};

use crate::endpoint::Endpoint;
use crate::inspect::is_missing;
use crate::names::{Namespace, exchange, failed_queue, main_queue, retry_queue};
use crate::session::{Connector, close};
use crate::timeouts::Timeouts;
use crate::topology::{
    TopologyError, failed_arguments, main_arguments, retry_arguments, topology_error,
};

pub use greeting::server_version;

const ACCESS_REFUSED: u16 = 403;
/// Number of round trips whose median counts.
const LATENCY_PROBES: usize = 5;

/// A permission of RabbitMQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// To declare.
    Configure,
    /// To publish and to bind.
    Write,
    /// To consume.
    Read,
}

impl Permission {
    /// Returns the column's name in `rabbitmqctl list_permissions`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// The result of an examination.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The broker's version, such as `3.13.7`; `None` over TLS, where only the client library receives it.
    pub version: Option<String>,
    /// The median of five round trips.
    pub latency: Duration,
    /// Queues and exchanges that do not exist, as `queue <name>` or `exchange <name>`.
    pub missing: Vec<String>,
    /// Objects that exist with other arguments.
    pub mismatches: Vec<TopologyError>,
    /// Permissions that the user lacks, each once, with the broker's message.
    pub refused: BTreeMap<Permission, String>,
    /// Messages in the failed queue; `None`: it does not exist.
    pub failed_ready: Option<u32>,
    /// Messages in the main queue of each pool that has one.
    pub main_ready: BTreeMap<String, u32>,
}

/// Examines the objects of `pools` in `namespace`.
///
/// # Errors
///
/// A sentence for people: the connection failed or broke. Never with the password.
pub async fn diagnose(
    endpoint: &Endpoint,
    name: &str,
    namespace: &Namespace,
    pools: &[PoolName],
    timeouts: &Timeouts,
) -> Result<Diagnostics, String> {
    let connection = Connector::default().open(endpoint, name, timeouts).await?;
    let mut examiner = Examiner {
        connection: &connection,
        channel: None,
        step: timeouts.step,
        found: Diagnostics::default(),
    };
    let done = examiner.check_all(namespace, pools).await;
    let mut found = examiner.found;
    close(&connection, timeouts.close).await;
    done?;
    found.version = greeting::server_version(endpoint, timeouts.step).await;
    Ok(found)
}

/// The result of a request.
enum Answer<T> {
    Done(T),
    Missing,
    Refused(String),
    Mismatch(TopologyError),
}

struct Examiner<'a> {
    connection: &'a Connection,
    channel: Option<Channel>,
    step: Duration,
    found: Diagnostics,
}

impl Examiner<'_> {
    async fn check_all(&mut self, namespace: &Namespace, pools: &[PoolName]) -> Result<(), String> {
        let failed = failed_queue(namespace);
        let mut empty = None;
        let ready = self.check_queue(&failed, failed_arguments()).await?;
        self.found.failed_ready = ready;
        self.measure_latency(&failed).await?;
        self.check_exchange(&exchange(namespace)).await?;
        for pool in pools {
            let main = main_queue(namespace, pool);
            if let Some(ready) = self.check_queue(&main, main_arguments(namespace)).await? {
                self.found.main_ready.insert(pool.to_string(), ready);
            }
            for delay_ms in DELAY_QUEUES_MS {
                let name = retry_queue(namespace, pool, delay_ms);
                let arguments = retry_arguments(namespace, pool, delay_ms);
                if self.check_queue(&name, arguments).await? == Some(0) {
                    empty = Some(name);
                }
            }
        }
        self.check_write_permission(namespace).await?;
        if let Some(queue) = empty.or((ready == Some(0)).then_some(failed)) {
            self.check_read_permission(&queue).await?;
        }
        Ok(())
    }

    /// Returns the channel. An error closes a channel; the next request then gets another.
    async fn channel(&mut self) -> Result<Channel, String> {
        if let Some(channel) = self.channel.take().filter(|channel| channel.status().connected()) {
            self.channel = Some(channel.clone());
            return Ok(channel);
        }
        let opened = timeout(self.step, self.connection.create_channel()).await;
        let channel =
            opened.map_err(|_| no_answer_message())?.map_err(|error| error.to_string())?;
        self.channel = Some(channel.clone());
        Ok(channel)
    }

    async fn check_queue(
        &mut self,
        name: &str,
        arguments: FieldTable,
    ) -> Result<Option<u32>, String> {
        let what = format!("queue {name}");
        let channel = self.channel().await?;
        let passive = QueueDeclareOptions::durable().passive();
        let request = channel.queue_declare(name.into(), passive, FieldTable::default());
        let ready = match self.request(&what, request).await? {
            Answer::Done(queue) => queue.message_count(),
            other => {
                self.record(&what, Permission::Configure, &other);
                return Ok(None);
            }
        };
        let options = QueueDeclareOptions::durable();
        let comparing = channel.queue_declare(name.into(), options, arguments);
        let compared = self.request(&what, comparing).await?;
        self.record(&what, Permission::Configure, &compared);
        Ok(Some(ready))
    }

    async fn check_exchange(&mut self, name: &str) -> Result<(), String> {
        let what = format!("exchange {name}");
        for passive in [true, false] {
            let channel = self.channel().await?;
            let options = ExchangeDeclareOptions { passive, durable: true, ..Default::default() };
            let kind = ExchangeKind::Direct;
            let request =
                channel.exchange_declare(name.into(), kind, options, FieldTable::default());
            let answer = self.request(&what, request).await?;
            self.record(&what, Permission::Configure, &answer);
            if !matches!(answer, Answer::Done(())) {
                break;
            }
        }
        Ok(())
    }

    async fn measure_latency(&mut self, queue: &str) -> Result<(), String> {
        let mut times = Vec::with_capacity(LATENCY_PROBES);
        for _ in 0..LATENCY_PROBES {
            let channel = self.channel().await?;
            let passive = QueueDeclareOptions::durable().passive();
            let began = Instant::now();
            let request = channel.queue_declare(queue.into(), passive, FieldTable::default());
            // Any answer proves that the broker answers in time.
            self.request("queue", request).await?;
            times.push(began.elapsed());
        }
        times.sort();
        self.found.latency = times[LATENCY_PROBES / 2];
        Ok(())
    }

    /// Publishes through the default exchange, as all publications of Sexton.
    async fn check_write_permission(&mut self, namespace: &Namespace) -> Result<(), String> {
        let channel = self.channel().await?;
        let selecting = channel.confirm_select(ConfirmSelectOptions::default());
        self.request("publish", selecting).await?;
        let nobody = format!("{namespace}_doctor_nobody");
        let options = BasicPublishOptions { mandatory: true, ..Default::default() };
        let publishing = async {
            let properties = BasicProperties::default();
            let sent = channel.basic_publish("".into(), (*nobody).into(), options, b"", properties);
            sent.await?.await
        };
        let answer = self.request("publish", publishing).await?;
        self.record("the default exchange", Permission::Write, &answer);
        Ok(())
    }

    async fn check_read_permission(&mut self, queue: &str) -> Result<(), String> {
        let channel = self.channel().await?;
        let getting = channel.basic_get(queue.into(), BasicGetOptions::default());
        let answer = self.request("get", getting).await?;
        // The queue was empty a moment ago; the client returns a message that has arrived since at once.
        if let Answer::Done(Some(taken)) = &answer {
            let back = BasicNackOptions { requeue: true, ..Default::default() };
            let _ = timeout(self.step, taken.delivery.acker.nack(back)).await;
        }
        self.record(&format!("queue {queue}"), Permission::Read, &answer);
        Ok(())
    }

    async fn request<T>(
        &mut self,
        what: &str,
        request: impl Future<Output = lapin::Result<T>>,
    ) -> Result<Answer<T>, String> {
        let error = match timeout(self.step, request).await {
            Ok(Ok(reply)) => return Ok(Answer::Done(reply)),
            Ok(Err(error)) => error,
            Err(_) => return Err(no_answer_message()),
        };
        if is_missing(&error) {
            return Ok(Answer::Missing);
        }
        match error.kind() {
            ErrorKind::ProtocolError(reply) if reply.get_id() == ACCESS_REFUSED => {
                Ok(Answer::Refused(reply.get_message().to_string()))
            }
            _ => match topology_error(what, &error) {
                mismatch @ TopologyError::Mismatch { .. } => Ok(Answer::Mismatch(mismatch)),
                TopologyError::Broker { reason, .. } => Err(reason),
            },
        }
    }

    fn record<T>(&mut self, what: &str, right: Permission, answer: &Answer<T>) {
        match answer {
            Answer::Done(_) => {}
            Answer::Missing => self.found.missing.push(what.to_owned()),
            Answer::Refused(reply) => {
                self.found.refused.entry(right).or_insert_with(|| format!("{what}: {reply}"));
            }
            Answer::Mismatch(error) => self.found.mismatches.push(error.clone()),
        }
    }
}

fn no_answer_message() -> String {
    "the broker does not answer on an open connection".to_owned()
}

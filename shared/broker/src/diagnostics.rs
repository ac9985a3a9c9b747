//! An examination of the broker: what is there, what is not as it should be, what this user may not do.
//!
//! Nothing is made and nothing is taken. What exists is found by passive declare, which answers for
//! each name. Arguments cannot be read over AMQP; a declare of what exists already is compared by the
//! broker and changes nothing, and its complaint names the argument. (Deleted between the two, a queue
//! would be made as it should be.) A message for a queue that does not exist, which comes back, shows whether the user
//! may publish; a get from an empty queue shows whether it may consume.
//!
//! What cannot be seen this way: bindings, feature flags, alarms, and what other users may do.

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
/// Round trips of which the middle one counts.
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
    /// As `rabbitmqctl list_permissions` heads its column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// As the broker says itself, such as `3.13.7`; none over TLS, where it says so only to the client
    /// library.
    pub version: Option<String>,
    /// The middle one of five round trips.
    pub latency: Duration,
    /// Queues and exchanges that do not exist, as `queue <name>` or `exchange <name>`.
    pub missing: Vec<String>,
    /// What exists with other arguments.
    pub mismatches: Vec<TopologyError>,
    /// What the user may not do, each right once, with the broker's words.
    pub refused: BTreeMap<Permission, String>,
    /// Messages in the failed queue; none: there is no such queue.
    pub failed_ready: Option<u32>,
    /// Messages in the main queue of each pool that has one.
    pub main_ready: BTreeMap<String, u32>,
}

/// Examines what `pools` have in `namespace`.
///
/// # Errors
///
/// A sentence for people: there is no connection, or it broke. Never with the password.
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

/// What became of a question.
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

    /// An error of a channel closes it; then the next question gets another.
    async fn channel(&mut self) -> Result<Channel, String> {
        if let Some(channel) = self.channel.take().filter(|it| it.status().connected()) {
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
        let asking = channel.queue_declare(name.into(), passive, FieldTable::default());
        let ready = match self.request(&what, asking).await? {
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
            let asking =
                channel.exchange_declare(name.into(), kind, options, FieldTable::default());
            let answer = self.request(&what, asking).await?;
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
            let asking = channel.queue_declare(queue.into(), passive, FieldTable::default());
            // Whatever is said, it was said in that time.
            self.request("queue", asking).await?;
            times.push(began.elapsed());
        }
        times.sort();
        self.found.latency = times[LATENCY_PROBES / 2];
        Ok(())
    }

    /// Through the default exchange, as everything that Sexton publishes.
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
        // It was empty a moment ago; what has come since goes back at once.
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
        asking: impl Future<Output = lapin::Result<T>>,
    ) -> Result<Answer<T>, String> {
        let error = match timeout(self.step, asking).await {
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

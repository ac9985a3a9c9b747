//! The topology: queues, exchange and bindings of a namespace, with their arguments.
//!
//! Everything is durable and every queue is a quorum queue with explicit arguments, so that no server's default
//! changes it. Arguments are part of a queue's identity: a queue that exists with others is never deleted or worked
//! around here (deleting one under live consumers wedges them); the process stops with a message instead, and a
//! change of arguments needs a new name and a drain.
//!
//! Declaring is idempotent and happens at every connect. The order is failed, main, retry: a queue that dead-letters
//! never exists before its target.

use std::time::Duration;

use lapin::options::{
    ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ErrorKind, ExchangeKind};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_model::pool::PoolName;
use tokio::time::timeout;

use crate::mismatch;
use crate::names::{
    FAILED_KEY, Namespace, exchange, failed_queue, main_queue, retry_key, retry_queue,
};

/// Number of deliveries after which the broker itself parks a ticket of a main queue. Crashes are counted in rows and
/// end long before; this stops only messages that never reach a row.
const MAIN_DELIVERY_LIMIT: i32 = 100;

/// "Never", in a way that every version understands: -1 means unlimited to RabbitMQ 4 and *at once*
/// to RabbitMQ 3, and no value means 20 to RabbitMQ 4.
const ENDLESS_DELIVERY_LIMIT: i32 = 1_000_000;

/// Why the topology is incomplete.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TopologyError {
    /// An object exists with other arguments. A retry cannot help: stop and report it.
    #[error(
        "{queue} exists on the broker with {argument} = {theirs}, where {ours} is needed: {remedy}"
    )]
    Mismatch {
        /// `queue <name>` or `exchange <name>`.
        queue: String,
        /// The argument that differs.
        argument: String,
        /// The value that this program declares.
        ours: String,
        /// The value on the broker.
        theirs: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The broker did not do it: no permission, no answer, no connection. Try again.
    #[error("declare {what}: {reason}")]
    Broker {
        /// The object to declare or delete.
        what: String,
        /// The broker's or the client library's message.
        reason: String,
    },
}

const MISMATCH_REMEDY: &str = "choose another namespace, or stop everything that uses this one, drain the \
                      queue, delete it and start again (never delete it while it is consumed)";

/// Returns the arguments of the failed queue: nothing in it expires, overflows or is dropped.
pub fn failed_arguments() -> FieldTable {
    let mut table = quorum();
    set(&mut table, "x-delivery-limit", ENDLESS_DELIVERY_LIMIT.into());
    table
}

/// Returns the arguments of a main queue: a ticket that returned to it more than 100 times goes to the failed queue.
pub fn main_arguments(namespace: &Namespace) -> FieldTable {
    let mut table = quorum();
    set(&mut table, "x-delivery-limit", MAIN_DELIVERY_LIMIT.into());
    dead_letter(&mut table, &exchange(namespace), FAILED_KEY);
    table
}

/// Returns the arguments of a delay queue: after `delay_ms` back to the pool's main queue.
pub fn retry_arguments(namespace: &Namespace, pool: &PoolName, delay_ms: u64) -> FieldTable {
    let mut table = quorum();
    set(&mut table, "x-message-ttl", AMQPValue::LongLongInt(delay_ms as i64));
    set(&mut table, "x-delivery-limit", ENDLESS_DELIVERY_LIMIT.into());
    // The default exchange cannot be deleted and has no binding to lose.
    dead_letter(&mut table, "", &main_queue(namespace, pool));
    table
}

fn quorum() -> FieldTable {
    let mut table = FieldTable::default();
    set(&mut table, "x-queue-type", text("quorum"));
    // A precondition of at-least-once dead-lettering; without it RabbitMQ silently falls back.
    set(&mut table, "x-overflow", text("reject-publish"));
    table
}

fn dead_letter(table: &mut FieldTable, exchange: &str, key: &str) {
    set(table, "x-dead-letter-strategy", text("at-least-once"));
    set(table, "x-dead-letter-exchange", text(exchange));
    set(table, "x-dead-letter-routing-key", text(key));
}

fn set(table: &mut FieldTable, name: &str, value: AMQPValue) {
    table.insert(name.into(), value);
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Declares everything of a namespace for these pools; each step may take `step`.
///
/// # Errors
///
/// [`TopologyError`]; earlier declarations stay, the channel is unusable afterwards.
pub async fn declare(
    channel: &Channel,
    namespace: &Namespace,
    pools: &[PoolName],
    step: Duration,
) -> Result<(), TopologyError> {
    let declaring = Declarer { channel, exchange: exchange(namespace), step };
    let failed = failed_queue(namespace);
    declaring.queue(&failed, failed_arguments()).await?;
    declaring.exchange().await?;
    declaring.bind(&failed, FAILED_KEY).await?;
    for pool in pools {
        declaring.queue(&main_queue(namespace, pool), main_arguments(namespace)).await?;
    }
    for pool in pools {
        for delay_ms in DELAY_QUEUES_MS {
            let name = retry_queue(namespace, pool, delay_ms);
            declaring.queue(&name, retry_arguments(namespace, pool, delay_ms)).await?;
            declaring.bind(&name, &retry_key(pool, delay_ms)).await?;
        }
    }
    Ok(())
}

/// Deletes exactly what [`declare`] creates, with every message in it, in reverse order. For tests and
/// demonstrations: no other program may be using or declaring the namespace.
///
/// # Errors
///
/// [`TopologyError::Broker`]; earlier deletions stay.
pub async fn delete(
    channel: &Channel,
    namespace: &Namespace,
    pools: &[PoolName],
    step: Duration,
) -> Result<(), TopologyError> {
    let mains = pools.iter().map(|pool| main_queue(namespace, pool));
    let delay_queues = pools.iter().flat_map(|pool| {
        DELAY_QUEUES_MS.into_iter().map(|delay_ms| retry_queue(namespace, pool, delay_ms))
    });
    for name in std::iter::once(failed_queue(namespace)).chain(mains).chain(delay_queues) {
        let deleting = channel.queue_delete((*name).into(), QueueDeleteOptions::default());
        with_timeout(step, deleting, &format!("queue {name}")).await?;
    }
    let name = exchange(namespace);
    let deleting = channel.exchange_delete((*name).into(), ExchangeDeleteOptions::default());
    with_timeout(step, deleting, &format!("exchange {name}")).await
}

struct Declarer<'a> {
    channel: &'a Channel,
    exchange: String,
    step: Duration,
}

impl Declarer<'_> {
    async fn queue(&self, name: &str, arguments: FieldTable) -> Result<(), TopologyError> {
        let options = QueueDeclareOptions::durable();
        let declaring = self.channel.queue_declare(name.into(), options, arguments);
        with_timeout(self.step, declaring, &format!("queue {name}")).await.map(|_| ())
    }

    async fn exchange(&self) -> Result<(), TopologyError> {
        let declaring = self.channel.exchange_declare(
            (*self.exchange).into(),
            ExchangeKind::Direct,
            ExchangeDeclareOptions { durable: true, ..Default::default() },
            FieldTable::default(),
        );
        with_timeout(self.step, declaring, &format!("exchange {}", self.exchange)).await
    }

    async fn bind(&self, queue: &str, key: &str) -> Result<(), TopologyError> {
        let binding = self.channel.queue_bind(
            queue.into(),
            (*self.exchange).into(),
            key.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        with_timeout(self.step, binding, &format!("binding {key} of exchange {}", self.exchange))
            .await
    }
}

async fn with_timeout<T>(
    step: Duration,
    operation: impl Future<Output = lapin::Result<T>>,
    what: &str,
) -> Result<T, TopologyError> {
    match timeout(step, operation).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(topology_error(what, &error)),
        Err(_) => Err(TopologyError::Broker {
            what: what.to_owned(),
            reason: format!("no answer within {} s", step.as_secs()),
        }),
    }
}

pub(crate) fn topology_error(what: &str, error: &lapin::Error) -> TopologyError {
    if let ErrorKind::ProtocolError(complaint) = error.kind()
        && let Some(found) = mismatch::parse(complaint.get_message().as_str())
    {
        return TopologyError::Mismatch {
            queue: what.to_owned(),
            argument: found.argument,
            ours: found.ours,
            theirs: found.theirs,
            remedy: MISMATCH_REMEDY,
        };
    }
    TopologyError::Broker { what: what.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(table: &FieldTable) -> Vec<(String, AMQPValue)> {
        table.inner().iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
    }

    fn every_table() -> Vec<FieldTable> {
        let ns = Namespace::default();
        let pool = PoolName::default_pool();
        let mut tables = vec![failed_arguments(), main_arguments(&ns)];
        tables.extend(DELAY_QUEUES_MS.map(|delay_ms| retry_arguments(&ns, &pool, delay_ms)));
        tables
    }

    #[test]
    fn every_queue_is_a_quorum_queue_with_a_positive_delivery_limit() {
        for table in every_table() {
            let get = |key: &str| table.inner().get(key).cloned();
            assert_eq!(get("x-queue-type"), Some(text("quorum")));
            assert_eq!(get("x-overflow"), Some(text("reject-publish")));
            // -1 makes RabbitMQ 3 drop a message at its first return.
            let limit = get("x-delivery-limit");
            assert!(matches!(limit, Some(AMQPValue::LongInt(limit)) if limit >= 100), "{limit:?}");
            // A queue with these would lose messages.
            assert_eq!((get("x-expires"), get("x-max-length")), (None, None));
        }
    }

    #[test]
    fn the_failed_queue_keeps_everything() {
        let keys: Vec<_> = entries(&failed_arguments()).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["x-delivery-limit", "x-overflow", "x-queue-type"]);
    }

    #[test]
    fn the_main_queue_dead_letters_to_the_failed_queue() {
        let expected = [
            ("x-dead-letter-exchange", text("cron_dlx")),
            ("x-dead-letter-routing-key", text("failed")),
            ("x-dead-letter-strategy", text("at-least-once")),
            ("x-delivery-limit", AMQPValue::LongInt(100)),
            ("x-overflow", text("reject-publish")),
            ("x-queue-type", text("quorum")),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(entries(&main_arguments(&Namespace::default())), expected);
    }

    #[test]
    fn a_delay_queue_gives_back_to_the_main_queue_of_its_pool() {
        let pool = PoolName::new("batch").unwrap();
        let expected = [
            ("x-dead-letter-exchange", text("")),
            ("x-dead-letter-routing-key", text("staging.batch")),
            ("x-dead-letter-strategy", text("at-least-once")),
            ("x-delivery-limit", AMQPValue::LongInt(1_000_000)),
            ("x-message-ttl", AMQPValue::LongLongInt(30_000)),
            ("x-overflow", text("reject-publish")),
            ("x-queue-type", text("quorum")),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        let ns = Namespace::new("staging").unwrap();
        assert_eq!(entries(&retry_arguments(&ns, &pool, 30_000)), expected);
    }
}

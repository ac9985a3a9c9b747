//! Reads from the broker how full its queues are.
//!
//! It declares nothing, because a mistyped namespace must not become durable queues. Bounded in time and in pools,
//! and never an error of the command: the answer says what is missing.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_broker::{
    DELAY_QUEUES_MS, Endpoint, InspectError, Link, LinkSettings, LinkState, Namespace, PoolName,
    Timeouts, names,
};
use sexton_service::settings::ConsoleSettings;
use tokio::time::timeout;

/// Time limit for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for all queries together.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of pools queried.
const MAX_POOLS: usize = 50;

/// The broker's answer.
#[derive(Debug)]
pub struct Queues {
    /// The namespace.
    pub namespace: String,
    /// Whether any queue of the namespace exists among those queried.
    pub exist: bool,
    /// Messages in the failed queue; `None` if it does not exist.
    pub failed_ready: Option<u64>,
    /// By pool.
    pub pools: BTreeMap<String, PoolQueues>,
}

/// The contents of a pool's queues; `None` for a queue that does not exist yet.
#[derive(Debug, Default)]
pub struct PoolQueues {
    /// Ready messages in the main queue.
    pub ready: Option<u64>,
    /// Consumers of the main queue.
    pub consumers: Option<u64>,
    /// Messages in all delay queues together.
    pub retry_ready: Option<u64>,
}

/// Reads the failed queue and those of the pools; or returns why it cannot.
pub(super) async fn read_queues(
    settings: &ConsoleSettings,
    pools: &[&str],
) -> Result<Queues, String> {
    let link = Link::observe(link_settings(settings)?);
    let connected = timeout(CONNECT_TIMEOUT, link.up()).await;
    let answer = match connected {
        Ok(Some(_)) => timeout(READ_TIMEOUT, read_depths(&link, pools))
            .await
            .unwrap_or_else(|_| Err("the broker answers too slowly".to_owned())),
        _ => Err(connect_failure(&link)),
    };
    link.close().await;
    answer
}

fn link_settings(settings: &ConsoleSettings) -> Result<LinkSettings, String> {
    let url = settings
        .amqp_url()
        .map_err(|_| "AMQP_URL is not set; set it to see the queues' depths".to_owned())?;
    let step = CONNECT_TIMEOUT;
    Ok(LinkSettings {
        endpoint: Endpoint::parse(url.expose()).map_err(|error| error.to_string())?,
        name: "sexton status".to_owned(),
        namespace: Namespace::new(settings.namespace.clone()).map_err(|error| error.to_string())?,
        pools: Vec::new(),
        timeouts: Timeouts {
            connect: step,
            step,
            close: Duration::from_secs(1),
            ..Timeouts::default()
        },
    })
}

fn connect_failure(link: &Link) -> String {
    match &*link.state().borrow() {
        LinkState::Down { reason: Some(reason) } => reason.clone(),
        _ => format!("no answer within {} s; check AMQP_URL", CONNECT_TIMEOUT.as_secs()),
    }
}

async fn read_depths(link: &Link, pools: &[&str]) -> Result<Queues, String> {
    let namespace = link.namespace();
    let failed = depth(link, &names::failed_queue(namespace)).await?;
    let mut answers = BTreeMap::new();
    for pool in pools.iter().take(MAX_POOLS) {
        let Ok(name) = pool.parse::<PoolName>() else { continue };
        let mut answer = PoolQueues::default();
        if let Some((ready, consumers)) = depth(link, &names::main_queue(namespace, &name)).await? {
            (answer.ready, answer.consumers) = (Some(ready), Some(consumers));
            for delay_ms in DELAY_QUEUES_MS {
                let queue = names::retry_queue(namespace, &name, delay_ms);
                if let Some((ready, _)) = depth(link, &queue).await? {
                    answer.retry_ready = Some(answer.retry_ready.unwrap_or(0) + ready);
                }
            }
        }
        answers.insert((*pool).to_owned(), answer);
    }
    Ok(Queues {
        namespace: namespace.to_string(),
        exist: failed.is_some() || answers.values().any(|answer| answer.ready.is_some()),
        failed_ready: failed.map(|(ready, _)| ready),
        pools: answers,
    })
}

impl Queues {
    /// Returns a message if no queue of the namespace exists.
    pub fn missing(&self) -> Option<String> {
        (!self.exist).then(|| {
            format!(
                "no queues of namespace {} exist; check SEXTON_NAMESPACE or start a scheduler",
                self.namespace
            )
        })
    }
}

/// Returns a queue's ready messages and consumers; `None`: it does not exist.
async fn depth(link: &Link, queue: &str) -> Result<Option<(u64, u64)>, String> {
    match link.depth(queue).await {
        Ok(depth) => Ok(Some((depth.ready.into(), depth.consumers.into()))),
        Err(InspectError::Missing(_)) => Ok(None),
        Err(InspectError::Unavailable(why)) => Err(why),
    }
}

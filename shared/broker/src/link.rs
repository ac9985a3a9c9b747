//! A connection that reconnects by itself.
//!
//! A supervisor connects, declares the topology and waits for the end; on any error it drops everything and starts
//! again, without end, with growing pauses of at most about three seconds. Each new connection has a new
//! *generation*; channels of an earlier one are dead, and their users open new ones.
//!
//! Publishing and consuming take a link each: a broker short of memory blocks a publishing connection whole,
//! including acknowledgements.
//!
//! Only one error stops a link for good: a queue or exchange that exists with other arguments. The state is then
//! [`LinkState::Fatal`], and the process should end with its message.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::{Channel, Connection};
use sexton_model::pool::PoolName;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::endpoint::Endpoint;
use crate::names::Namespace;
use crate::queue_incidents::QueueIncidents;
use crate::supervisor::supervise;
use crate::timeouts::Timeouts;
use crate::topology::{self, TopologyError};

/// The shortest time between two declarations on request, however many find a queue missing.
const REDECLARE_EVERY: Duration = Duration::from_secs(1);

/// Settings of a link.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The broker's address.
    pub endpoint: Endpoint,
    /// The connection's name in the broker's tools, for instance `worker-1 consume`.
    pub name: String,
    /// The namespace whose topology the link declares.
    pub namespace: Namespace,
    /// The pools to declare; [`Link::ensure_pools`] adds others.
    pub pools: Vec<PoolName>,
    /// How long each step may take.
    pub timeouts: Timeouts,
}

/// The state of a link.
#[derive(Clone, Debug)]
pub enum LinkState {
    /// No connection; the supervisor is trying.
    Down {
        /// Why the last try or the last connection failed; `None` before the first.
        reason: Option<String>,
    },
    /// Connected and declared.
    Up {
        /// 1 for the first connection, one more for each that follows.
        generation: u64,
    },
    /// The topology on the broker differs; the link will not try again.
    Fatal(TopologyError),
    /// Closed by [`Link::close`], or every handle dropped.
    Closed,
}

/// There is no usable connection now.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unavailable(pub(crate) String);

/// A handle to a supervised connection; cheap to clone. The supervisor ends with the last handle.
#[derive(Clone, Debug)]
pub struct Link {
    shared: Arc<Shared>,
    _guard: Arc<DropGuard>,
}

/// State shared by the handles and the supervisor.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: LinkSettings,
    pools: Mutex<BTreeSet<PoolName>>,
    pub(crate) state: watch::Sender<LinkState>,
    current: Mutex<Option<Current>>,
    suspect: AtomicU64,
    suspected: Notify,
    declared: tokio::sync::Mutex<Option<Instant>>,
    inspection: tokio::sync::Mutex<Option<(u64, Channel)>>,
    queue_incidents: QueueIncidents,
    /// Whether the link declares missing objects, or only observes.
    pub(crate) declares: bool,
    pub(crate) stop: CancellationToken,
}

/// The connection in use.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) generation: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Link {
    /// Starts the supervisor on the current tokio runtime and returns at once, connected or not.
    pub fn start(settings: LinkSettings) -> Self {
        Self::begin(settings, true)
    }

    /// Like [`Link::start`], but declares nothing, and so leaves nothing behind in a misspelt namespace.
    /// [`Link::depth`] reports a queue that does not exist; [`LinkState::Fatal`] does not occur.
    pub fn observe(settings: LinkSettings) -> Self {
        Self::begin(settings, false)
    }

    fn begin(settings: LinkSettings, declares: bool) -> Self {
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            pools: Mutex::new(settings.pools.iter().cloned().collect()),
            settings,
            state: watch::Sender::new(LinkState::Down { reason: None }),
            current: Mutex::default(),
            suspect: AtomicU64::new(0),
            suspected: Notify::new(),
            declared: tokio::sync::Mutex::default(),
            inspection: tokio::sync::Mutex::default(),
            queue_incidents: QueueIncidents::default(),
            declares,
            stop: stop.clone(),
        });
        tokio::spawn(supervise(Arc::clone(&shared)));
        Self { shared, _guard: Arc::new(stop.drop_guard()) }
    }

    /// Returns the state and its changes.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.shared.state.subscribe()
    }

    /// Returns whether the link is connected, for readiness.
    pub fn is_up(&self) -> bool {
        matches!(*self.shared.state.borrow(), LinkState::Up { .. })
    }

    /// Waits for a connection and returns its generation; `None` if the link has ended. Cancel-safe.
    pub async fn up(&self) -> Option<u64> {
        let mut state = self.state();
        let settled =
            state.wait_for(|state| !matches!(state, LinkState::Down { .. })).await.ok()?;
        if let LinkState::Up { generation } = *settled { Some(generation) } else { None }
    }

    /// Waits until the topology on the broker proves to differ; for ever if it does not. Cancel-safe. For the
    /// `select!` that decides when a process ends.
    pub async fn failed(&self) -> TopologyError {
        let mut state = self.state();
        loop {
            if let LinkState::Fatal(error) = &*state.borrow_and_update() {
                return error.clone();
            }
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Closes the connection and stops trying. Unconfirmed publications have an unknown result then; unacknowledged
    /// deliveries return to their queue.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        let mut state = self.state();
        let ended = state.wait_for(|s| matches!(s, LinkState::Closed | LinkState::Fatal(_)));
        // Twice the limit for closing, because a running declare is aborted first.
        if timeout(self.timeouts().close * 2, ended).await.is_err() {
            tracing::debug!(link.name = self.shared.settings.name, "the link is slow to close");
        }
    }

    /// Returns the namespace whose topology this link declares.
    pub fn namespace(&self) -> &Namespace {
        &self.shared.settings.namespace
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.shared.settings.timeouts
    }

    /// Returns whether the broker has stopped reading from this connection.
    pub fn is_blocked(&self) -> bool {
        self.shared.current().is_some_and(|current| current.connection.status().blocked())
    }

    /// Adds pools and declares them at once if they are new and the link is connected (otherwise with the next
    /// connection).
    ///
    /// # Errors
    ///
    /// [`TopologyError`]; the pools stay added.
    pub async fn ensure_pools(&self, pools: &[PoolName]) -> Result<(), TopologyError> {
        let mut added = Vec::new();
        {
            let mut known = self.shared.pools.lock().unwrap_or_else(PoisonError::into_inner);
            added.extend(pools.iter().filter(|pool| known.insert((*pool).clone())).cloned());
        }
        if added.is_empty() || !self.is_up() {
            return Ok(());
        }
        self.declare(&added).await
    }

    /// Declares the topology again, after a queue was found missing. At most once a second; a call in between does
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]; a mismatch also ends the link.
    pub async fn redeclare(&self) -> Result<(), TopologyError> {
        let mut declared = self.shared.declared.lock().await;
        if declared.is_some_and(|at| at.elapsed() < REDECLARE_EVERY) {
            return Ok(());
        }
        let done = self.declare(&self.shared.pools()).await;
        *declared = Some(Instant::now());
        done
    }

    async fn declare(&self, pools: &[PoolName]) -> Result<(), TopologyError> {
        if !self.shared.declares {
            return Ok(());
        }
        let unavailable =
            |error: Unavailable| TopologyError::Broker { what: "topology".into(), reason: error.0 };
        let (_, channel) = self.channel().await.map_err(unavailable)?;
        let done = topology::declare(&channel, self.namespace(), pools, self.timeouts().step).await;
        if let Err(error @ TopologyError::Mismatch { .. }) = &done {
            self.shared.state.send_replace(LinkState::Fatal(error.clone()));
            self.shared.stop.cancel();
        }
        done
    }

    /// Opens a channel on the current connection; also returns its generation.
    pub(crate) async fn channel(&self) -> Result<(u64, Channel), Unavailable> {
        let Some(current) = self.shared.current() else {
            return Err(Unavailable("there is no connection to the broker".to_owned()));
        };
        match timeout(self.timeouts().step, current.connection.create_channel()).await {
            Ok(Ok(channel)) => Ok((current.generation, channel)),
            Ok(Err(error)) => Err(Unavailable(error.to_string())),
            Err(_) => {
                self.suspect(current.generation);
                Err(Unavailable("the broker does not open a channel".to_owned()))
            }
        }
    }

    /// Tells the supervisor that a connection does not answer; it drops it and opens another.
    pub(crate) fn suspect(&self, generation: u64) {
        self.shared.suspect.fetch_max(generation, Ordering::Relaxed);
        self.shared.suspected.notify_one();
    }

    /// Returns the generation of the current connection; 0 without one.
    pub(crate) fn generation(&self) -> u64 {
        self.shared.current().map_or(0, |current| current.generation)
    }

    /// Returns the noted queue incidents.
    pub(crate) fn queue_incidents(&self) -> &QueueIncidents {
        &self.shared.queue_incidents
    }

    /// Returns the pools that it declares.
    pub(crate) fn pools(&self) -> Vec<PoolName> {
        self.shared.pools()
    }

    /// Returns the channel shared by all inspections.
    pub(crate) fn inspection(&self) -> &tokio::sync::Mutex<Option<(u64, Channel)>> {
        &self.shared.inspection
    }
}

impl Shared {
    fn current(&self) -> Option<Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn pools(&self) -> Vec<PoolName> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn set(&self, current: Option<Current>) {
        let state = match &current {
            Some(current) => LinkState::Up { generation: current.generation },
            None => LinkState::Down { reason: None },
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
        if let Ok(mut inspection) = self.inspection.try_lock() {
            *inspection = None;
        }
        self.set_state(state);
    }

    /// Changes the state, but never from a fatal one, which is final.
    pub(crate) fn set_state(&self, state: LinkState) {
        self.state.send_if_modified(|now| {
            let open = !matches!(now, LinkState::Fatal(_));
            if open {
                *now = state;
            }
            open
        });
    }

    pub(crate) async fn suspected(&self, generation: u64) -> String {
        while self.suspect.load(Ordering::Relaxed) < generation {
            self.suspected.notified().await;
        }
        "the broker does not answer on an open connection".to_owned()
    }
}

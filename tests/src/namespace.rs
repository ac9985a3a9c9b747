//! A RabbitMQ namespace per test, deleted with everything in it when the test ends, also when it fails.
//!
//! All tests share the server that `AMQP_URL` names, and change nothing else there.

use std::sync::atomic::{AtomicUsize, Ordering};

use lapin::{Channel, Connection, ConnectionProperties};
use sexton_broker::names::{failed_queue, main_queue, retry_queue};
use sexton_broker::{Endpoint, Link, LinkSettings, Namespace, PoolName, Timeouts, topology};

/// The server that tests use: `AMQP_URL`.
pub fn amqp_url() -> String {
    // Unwrap safety: no test can run without a broker, and the message says how to get one.
    std::env::var("AMQP_URL")
        .expect("AMQP_URL is not set: run `make test`, which provides a broker")
}

/// A namespace that no other test and no other run uses.
#[derive(Debug)]
pub struct TestNamespace {
    namespace: Namespace,
    pools: Vec<PoolName>,
    timeouts: Timeouts,
    url: String,
}

impl TestNamespace {
    /// A fresh namespace with the pool `default` on the server that tests use. Nothing exists on the
    /// broker before a link of it connects.
    pub fn new() -> Self {
        Self::on(&amqp_url())
    }

    /// A fresh namespace on the server of `url`.
    pub fn on(url: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let run = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("test-{}-{}", &run[..12], NEXT.fetch_add(1, Ordering::Relaxed));
        Self::named_on(&name, url)
    }

    /// The namespace `name` on the server of `url`.
    ///
    /// # Panics
    ///
    /// If that cannot be a namespace's name.
    pub fn named_on(name: &str, url: &str) -> Self {
        Self {
            // Unwrap safety: names come from the harness, of lower-case letters, digits and hyphens.
            namespace: Namespace::new(name).expect("a namespace's name"),
            pools: vec![PoolName::default_pool()],
            timeouts: Timeouts::default(),
            url: url.to_owned(),
        }
    }

    /// Adds a pool.
    #[must_use]
    pub fn with_pool(mut self, pool: PoolName) -> Self {
        self.add_pool(pool);
        self
    }

    /// Adds a pool, unless it is known.
    pub fn add_pool(&mut self, pool: PoolName) {
        if !self.pools.contains(&pool) {
            self.pools.push(pool);
        }
    }

    /// Uses other limits than those of production.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The namespace itself.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its pools, `default` first.
    pub fn pools(&self) -> &[PoolName] {
        &self.pools
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The main queue of the pool `default`.
    pub fn main(&self) -> String {
        main_queue(&self.namespace, &PoolName::default_pool())
    }

    /// A delay queue of the pool `default`.
    pub fn retry(&self, delay_ms: u64) -> String {
        retry_queue(&self.namespace, &PoolName::default_pool(), delay_ms)
    }

    /// The failed queue.
    pub fn failed(&self) -> String {
        failed_queue(&self.namespace)
    }

    /// Settings for a link to this namespace.
    pub fn settings(&self) -> LinkSettings {
        LinkSettings {
            // Unwrap safety: a URL that cannot be read fails every test, which is what it should do.
            endpoint: Endpoint::parse(&self.url).expect("AMQP_URL names the tests' server"),
            name: format!("{} link", self.namespace),
            namespace: self.namespace.clone(),
            pools: self.pools.clone(),
            timeouts: self.timeouts,
        }
    }

    /// A link that is connected and has declared everything.
    ///
    /// # Panics
    ///
    /// If there is no connection within the time for one.
    pub async fn link(&self) -> Link {
        let link = Link::start(self.settings());
        let up = tokio::time::timeout(self.timeouts.connect, link.up()).await;
        assert!(matches!(up, Ok(Some(_))), "no link to {}: {:?}", self.url, *link.state().borrow());
        link
    }

    /// A channel on a separate connection, independent of Sexton.
    ///
    /// # Panics
    ///
    /// If the server cannot be reached.
    pub async fn raw(&self) -> Raw {
        // Unwrap safety: without a server every test fails, which is what it should do.
        let connection = Connection::connect(&self.url, ConnectionProperties::default())
            .await
            .expect("a RabbitMQ server at AMQP_URL");
        // Unwrap safety: as above.
        let channel = connection.create_channel().await.expect("a channel");
        Raw { channel, _connection: connection }
    }
}

impl Default for TestNamespace {
    fn default() -> Self {
        Self::new()
    }
}

/// A bare channel and the connection that it lives on.
#[derive(Debug)]
pub struct Raw {
    /// The channel.
    pub channel: Channel,
    _connection: Connection,
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        // A separate thread and runtime: the test's may be the one that is ending.
        let (namespace, pools) = (self.namespace.clone(), self.pools.clone());
        let (url, limit) = (self.url.clone(), Timeouts::default().step);
        let deleting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Unwrap safety: only a machine without threads or descriptors has no runtime.
            runtime.expect("a runtime").block_on(async move {
                let properties = ConnectionProperties::default();
                let connection = Connection::connect(&url, properties).await.ok()?;
                let channel = connection.create_channel().await.ok()?;
                topology::delete(&channel, &namespace, &pools, limit).await.ok()?;
                connection.close(200, "done".into()).await.ok()
            })
        });
        if deleting.join().ok().flatten().is_none() {
            eprintln!("namespace {} could not be deleted", self.namespace);
        }
    }
}

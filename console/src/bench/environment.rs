//! Where is measured: a database and a namespace of their own on the platform's servers.
//!
//! Made in this order: the database, the namespace (by the programs); removed in the other. So as long as anything is
//! left the database is, and its name says how the namespace is called: that is how [`leftovers`] of a process that
//! was killed are found.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_broker::diagnostics::server_version;
use sexton_broker::{Endpoint, Link, LinkSettings, LinkState, Namespace, PoolName, Timeouts};
use sexton_service::clock;
use sexton_store::scratch::{self, Server};
use sexton_store::{Store, StoreError, StoreOptions};
use tokio::time::timeout;
use uuid::Uuid;

use crate::failure::Failure;
use crate::session::Session;

/// The pool of the workers.
pub const POOL: &str = "bench";
/// For the broker, to connect and to delete.
const BROKER_TIMEOUT: Duration = Duration::from_secs(20);
/// The program that made a younger one may be about to use it.
const MIN_LEFTOVER_AGE: chrono::Duration = chrono::Duration::seconds(10);

/// A place to measure, or what is left of one.
#[derive(Debug)]
pub struct BenchEnvironment {
    server: Server,
    database: String,
    namespace: Namespace,
    endpoint: Endpoint,
    /// The secret of the database's URL and the broker's, for programs.
    pub(crate) urls: Urls,
}

/// Where the programs connect to.
pub(crate) struct Urls {
    pub(crate) database: String,
    pub(crate) amqp: String,
}

impl std::fmt::Debug for Urls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Urls(..)")
    }
}

impl BenchEnvironment {
    /// Makes the database, migrated. The first program that starts there declares the namespace.
    ///
    /// # Errors
    ///
    /// [`Failure`]; nothing is left then but for a database that could not be dropped again.
    pub async fn create(session: &Session) -> Result<Self, Failure> {
        // Says in the words of every command why the server does not answer.
        session.database().await?.close().await;
        let tag = Uuid::new_v4().as_fields().0;
        let environment = Self::open(session, scratch::name(clock::now(), tag))?;
        environment.connect_broker().await?.close().await;
        environment.server.create(&environment.database).await.map_err(create_failure)?;
        let migration = async {
            let store = environment.store()?;
            store.migrate().await?;
            store.close().await;
            Ok::<(), StoreError>(())
        };
        if let Err(error) = migration.await {
            environment.server.drop(&environment.database).await?;
            return Err(error.into());
        }
        Ok(environment)
    }

    fn open(session: &Session, database: String) -> Result<Self, Failure> {
        let settings = session.settings()?;
        let (postgres, rabbit) = (settings.database_url()?, settings.amqp_url()?);
        let server = Server::new(postgres.expose());
        let endpoint = Endpoint::parse(rabbit.expose())
            .map_err(|error| Failure::Usage(format!("AMQP_URL: {error}")))?;
        let namespace = Namespace::new(database.replace('_', "-"))
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let urls = Urls { database: server.url_of(&database)?, amqp: rabbit.expose().to_owned() };
        Ok(Self { server, database, namespace, endpoint, urls })
    }

    /// Which RabbitMQ it is; `None`: it does not say so.
    pub async fn broker_version(&self) -> Option<String> {
        server_version(&self.endpoint, BROKER_TIMEOUT).await
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.as_str()
    }

    /// What the database and the namespace are called.
    pub fn names(&self) -> (&str, &str) {
        (&self.database, self.namespace.as_str())
    }

    /// The database.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn store(&self) -> Result<Store, StoreError> {
        let options = StoreOptions::new(&self.urls.database, "sexton bench");
        Store::open(&StoreOptions { pool_size: 2, ..options })
    }

    /// Takes both away. The programs must have ended.
    ///
    /// # Errors
    ///
    /// [`Failure`] with what is left and how to remove it.
    pub async fn remove(&self) -> Result<(), Failure> {
        let left = |why: String| {
            Failure::Failed(format!(
                "database {} and namespace {} are left: {why}; remove them with `sexton bench --clean`",
                self.database, self.namespace
            ))
        };
        let link = self.connect_broker().await.map_err(|error| left(error.to_string()))?;
        let mut pools = vec![PoolName::default_pool()];
        pools.extend(POOL.parse::<PoolName>());
        let removing = timeout(BROKER_TIMEOUT, link.remove_namespace(&pools)).await;
        link.close().await;
        match removing {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(left(error.to_string())),
            Err(_) => return Err(left("the broker does not answer".to_owned())),
        }
        self.server.drop(&self.database).await.map_err(|error| left(error.to_string()))
    }

    async fn connect_broker(&self) -> Result<Link, Failure> {
        let link = Link::observe(LinkSettings {
            endpoint: self.endpoint.clone(),
            name: "sexton bench".to_owned(),
            namespace: self.namespace.clone(),
            pools: Vec::new(),
            timeouts: Timeouts::default(),
        });
        if !matches!(timeout(BROKER_TIMEOUT, link.up()).await, Ok(Some(_))) {
            let why = match &*link.state().borrow() {
                // Says what to check.
                LinkState::Down { reason: Some(reason) } => reason.clone(),
                _ => format!(
                    "the broker at {} does not answer within {} s; check AMQP_URL and that RabbitMQ runs",
                    self.endpoint,
                    BROKER_TIMEOUT.as_secs()
                ),
            };
            return Err(Failure::Unreachable(why));
        }
        Ok(link)
    }
}

/// What measurements that were killed have left behind.
///
/// # Errors
///
/// [`Failure`].
pub async fn leftovers(
    session: &Session,
    now: DateTime<Utc>,
) -> Result<Vec<BenchEnvironment>, Failure> {
    let settings = session.settings()?;
    let names = Server::new(settings.database_url()?.expose()).leftovers().await?;
    let old = |name: &String| {
        scratch::made_at(name).is_some_and(|made_at| now - made_at > MIN_LEFTOVER_AGE)
    };
    names.into_iter().filter(old).map(|name| BenchEnvironment::open(session, name)).collect()
}

fn create_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Forbidden(error) | StoreError::Statement(error) => Failure::Failed(format!(
            "a database to measure in cannot be made: {error}; if the role of DATABASE_URL may not make \
             databases, let it (`ALTER ROLE ... CREATEDB`), or name one that may"
        )),
        other => other.into(),
    }
}

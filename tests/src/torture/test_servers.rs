//! The servers that arenas stand on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use lapin::{Connection, ConnectionProperties};
use sexton_servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::fault::{Server, ServerFault};

/// Processes of many arenas, each with a pool of connections.
const MAX_CONNECTIONS: u16 = 1_000;

/// For one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many times a server that was struck is started.
const MAX_STARTS: usize = 4;

/// A PostgreSQL and a RabbitMQ.
#[derive(Debug)]
pub struct TestServers {
    /// A superuser's URL.
    pub database_url: String,
    /// The broker's URL.
    pub amqp_url: String,
    private: Option<Mutex<PrivateServers>>,
    wedged: AtomicBool,
}

#[derive(Debug)]
struct PrivateServers {
    postgres: PostgresServer,
    rabbit: RabbitServer,
}

impl TestServers {
    /// Servers of its own, which may be struck.
    pub async fn private() -> Result<Self> {
        let options = PostgresOptions { max_connections: MAX_CONNECTIONS, ..Default::default() };
        let (postgres, rabbit) = tokio::try_join!(
            PostgresServer::start_private(options),
            RabbitServer::start_private(RabbitOptions::default())
        )?;
        Ok(Self {
            database_url: postgres.url().to_owned(),
            amqp_url: rabbit.url().to_owned(),
            private: Some(Mutex::new(PrivateServers { postgres, rabbit })),
            wedged: AtomicBool::new(false),
        })
    }

    /// Servers that others use as well, which may not.
    pub fn shared(database_url: &str, amqp_url: &str) -> Self {
        Self {
            database_url: database_url.to_owned(),
            amqp_url: amqp_url.to_owned(),
            private: None,
            wedged: AtomicBool::new(false),
        }
    }

    /// Strikes a server, which is away for a while, and brings it back, whatever went wrong before.
    ///
    /// # Errors
    ///
    /// It could not be struck; or it does not come back, and then the site is [wedged](Self::is_wedged).
    pub(super) async fn blow(
        &self,
        server: Server,
        ruin: ServerFault,
        away: Duration,
    ) -> Result<()> {
        let struck = self.strike(server, ruin).await;
        sleep(away).await;
        let restored = self.restore(server, ruin).await;
        if restored.is_err() {
            self.wedged.store(true, Ordering::Relaxed);
        }
        struck.and(restored)
    }

    /// Whether a server of it did not come back: nothing can stand here any more.
    pub(super) fn is_wedged(&self) -> bool {
        self.wedged.load(Ordering::Relaxed)
    }

    /// Strikes a server, first half: it is away, or empty and back.
    async fn strike(&self, server: Server, ruin: ServerFault) -> Result<()> {
        let Some(private) = &self.private else { bail!("the servers are shared") };
        let mut private = private.lock().await;
        match (server, ruin) {
            (Server::RabbitMq, ServerFault::Killed) => private.rabbit.kill().await?,
            (Server::RabbitMq, ServerFault::Frozen) => private.rabbit.pause().await?,
            // Killed and emptied; the start that follows is part of it, and may fail.
            (Server::RabbitMq, ServerFault::Wiped) => drop(private.rabbit.wipe().await),
            (Server::PostgreSql, ServerFault::Frozen) => private.postgres.pause().await?,
            (Server::PostgreSql, ServerFault::Killed | ServerFault::Wiped) => {
                private.postgres.kill().await?;
            }
        }
        Ok(())
    }

    /// Second half: it is back. A busy machine may need more than one try.
    async fn restore(&self, server: Server, ruin: ServerFault) -> Result<()> {
        for _ in 1..MAX_STARTS {
            if self.try_restore(server, ruin).await.is_ok() {
                return Ok(());
            }
        }
        self.try_restore(server, ruin).await
    }

    async fn try_restore(&self, server: Server, ruin: ServerFault) -> Result<()> {
        let Some(private) = &self.private else { bail!("the servers are shared") };
        let mut private = private.lock().await;
        match (server, ruin) {
            (Server::RabbitMq, ServerFault::Killed) => private.rabbit.restart().await?,
            (Server::RabbitMq, ServerFault::Frozen) => private.rabbit.resume().await?,
            (Server::RabbitMq, ServerFault::Wiped) => {
                if answers(private.rabbit.url()).await.is_err() {
                    private.rabbit.restart().await?;
                }
            }
            (Server::PostgreSql, ServerFault::Frozen) => private.postgres.resume().await?,
            (Server::PostgreSql, ServerFault::Killed | ServerFault::Wiped) => {
                private.postgres.restart().await?;
            }
        }
        Ok(())
    }

    /// Ends the servers that are its own.
    pub async fn end(self) -> Result<()> {
        if let Some(private) = self.private {
            let PrivateServers { postgres, rabbit } = private.into_inner();
            let (postgres, rabbit) = tokio::join!(postgres.end(), rabbit.end());
            postgres?;
            rabbit?;
        }
        Ok(())
    }
}

async fn answers(url: &str) -> Result<()> {
    let connection = Connection::connect(url, ConnectionProperties::default());
    let connection = timeout(CONNECT_TIMEOUT, connection).await??;
    connection.close(200, "done".into()).await?;
    Ok(())
}

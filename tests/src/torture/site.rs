//! The servers that arenas stand on.

use anyhow::{Result, bail};
use sexton_servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer};
use tokio::sync::Mutex;

use super::fault::{Ruin, Server};

/// Processes of many arenas, each with a pool of connections.
const MAX_CONNECTIONS: u16 = 1_000;

/// A PostgreSQL and a RabbitMQ.
#[derive(Debug)]
pub struct Site {
    /// A superuser's URL.
    pub database_url: String,
    /// The broker's URL.
    pub amqp_url: String,
    own: Option<Mutex<Own>>,
}

#[derive(Debug)]
struct Own {
    postgres: PostgresServer,
    rabbit: RabbitServer,
}

impl Site {
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
            own: Some(Mutex::new(Own { postgres, rabbit })),
        })
    }

    /// Servers that others use as well, which may not.
    pub fn shared(database_url: &str, amqp_url: &str) -> Self {
        Self { database_url: database_url.to_owned(), amqp_url: amqp_url.to_owned(), own: None }
    }

    /// Strikes a server, first half: it is away, or empty and back.
    pub(super) async fn strike(&self, server: Server, ruin: Ruin) -> Result<()> {
        let Some(own) = &self.own else { bail!("the servers are shared") };
        let mut own = own.lock().await;
        match (server, ruin) {
            (Server::RabbitMq, Ruin::Killed) => own.rabbit.kill().await?,
            (Server::RabbitMq, Ruin::Frozen) => own.rabbit.pause().await?,
            (Server::RabbitMq, Ruin::Wiped) => own.rabbit.wipe().await?,
            (Server::PostgreSql, Ruin::Frozen) => own.postgres.pause().await?,
            (Server::PostgreSql, Ruin::Killed | Ruin::Wiped) => own.postgres.kill().await?,
        }
        Ok(())
    }

    /// Second half: it is back.
    pub(super) async fn restore(&self, server: Server, ruin: Ruin) -> Result<()> {
        let Some(own) = &self.own else { bail!("the servers are shared") };
        let mut own = own.lock().await;
        match (server, ruin) {
            (Server::RabbitMq, Ruin::Killed) => own.rabbit.restart().await?,
            (Server::RabbitMq, Ruin::Frozen) => own.rabbit.resume().await?,
            (Server::RabbitMq, Ruin::Wiped) => {}
            (Server::PostgreSql, Ruin::Frozen) => own.postgres.resume().await?,
            (Server::PostgreSql, Ruin::Killed | Ruin::Wiped) => own.postgres.restart().await?,
        }
        Ok(())
    }

    /// Ends the servers that are its own.
    pub async fn end(self) -> Result<()> {
        if let Some(own) = self.own {
            let Own { postgres, rabbit } = own.into_inner();
            let (postgres, rabbit) = tokio::join!(postgres.end(), rabbit.end());
            postgres?;
            rabbit?;
        }
        Ok(())
    }
}

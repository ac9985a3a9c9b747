//! A RabbitMQ for tests that set policies and permissions or suspend a queue.
//!
//! Such a test may not use the server that `AMQP_URL` names, but needs no server for itself either, which would take
//! seconds of a processor to start: all of them in a process share one, each with a virtual host of its own.

use anyhow::Result;
use sexton_servers::{RabbitOptions, RabbitServer};
use tokio::sync::OnceCell;

/// Ended by its guard when the process ends, as destructors of statics never run.
static SERVER: OnceCell<RabbitServer> = OnceCell::const_new();

/// A virtual host of one's own. It stays until the process ends.
#[derive(Debug)]
pub struct VirtualHost {
    server: &'static RabbitServer,
    name: String,
    url: String,
}

impl VirtualHost {
    /// Creates an empty one.
    pub async fn create() -> Result<Self> {
        let start = async || RabbitServer::start_private(RabbitOptions::default()).await;
        let server = SERVER.get_or_try_init(start).await?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let url = format!("{}{name}", server.url().trim_end_matches("%2f"));
        let host = Self { server, name, url };
        host.control(&["add_vhost", &host.name]).await?;
        host.permit("sexton", [".*", ".*", ".*"]).await?;
        Ok(host)
    }

    /// Its administrator's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the policy `name` for the queues whose names match `pattern`.
    pub async fn set_policy(
        &self,
        name: &str,
        pattern: &str,
        definition: &str,
        priority: u32,
    ) -> Result<()> {
        let priority = priority.to_string();
        let options = ["--apply-to", "queues", "--priority", &priority];
        let policy = [name, pattern, definition];
        self.control(&[&["set_policy", "-p", &self.name][..], &options, &policy].concat()).await
    }

    /// Removes the policy `name`.
    pub async fn clear_policy(&self, name: &str) -> Result<()> {
        self.control(&["clear_policy", "-p", &self.name, name]).await
    }

    /// Adds a user of the server, without any right here.
    pub async fn add_user(&self, user: &str, password: &str) -> Result<()> {
        self.control(&["add_user", user, password]).await
    }

    /// Gives `user` the rights to configure, to write and to read.
    pub async fn permit(&self, user: &str, rights: [&str; 3]) -> Result<()> {
        let [configure, write, read] = rights;
        self.control(&["set_permissions", "-p", &self.name, user, configure, write, read]).await
    }

    /// Suspends a queue's process, so that it accepts messages and confirms none, like a queue without a leader.
    pub async fn suspend_queue(&self, queue: &str) -> Result<()> {
        let suspend = format!(
            "{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"{}\">>, queue, <<\"{queue}\">>)), \
             ok = sys:suspend(amqqueue:get_pid(Q)).",
            self.name
        );
        self.control(&["eval", &suspend]).await
    }

    async fn control(&self, arguments: &[&str]) -> Result<()> {
        Ok(self.server.control(arguments).await?)
    }
}

//! Relays between the programs and their servers, which stay as they are.

use std::time::Duration;

use sexton_tests::platform::Platform;
use sexton_tests::proxy::Proxy;

use super::{DEFAULTS, FINAL_TIMEOUT, Scene};

impl Scene {
    /// From now on, programs and commands reach `broker` or `database` through a relay.
    pub(super) async fn relay(&mut self, server: &str) {
        let (variable, url) = match server {
            "broker" => ("AMQP_URL", self.platform.amqp_url()),
            "database" => ("DATABASE_URL", self.platform.database_url()),
            other => panic!("no server is called {other}"),
        };
        let relay = Proxy::before(url).await.unwrap();
        self.environment.insert(variable.to_owned(), relay.url(url));
        self.relays.insert(server.to_owned(), relay);
    }

    /// The variables of programs that lead through the relays.
    pub(super) fn relayed(&self) -> impl Iterator<Item = (&str, &str)> {
        let set = |name: &'static str| Some((name, self.environment.get(name)?.as_str()));
        let by = move |(server, name): (&str, &'static str)| {
            self.relays.contains_key(server).then(|| set(name)).flatten()
        };
        [("broker", "AMQP_URL"), ("database", "DATABASE_URL")].into_iter().filter_map(by)
    }

    /// `SERVER MILLISECONDS`: each piece of either side arrives so much later.
    pub(super) fn slow(&self, server_and_time: &str) {
        let (server, time) = server_and_time.split_once(' ').unwrap();
        self.relays[server].delay(Duration::from_millis(time.parse().unwrap()));
    }

    /// Starts a scheduler that cannot become ready, and waits only until it answers.
    pub(super) async fn start_unready(&mut self, name: &str) {
        let env: Vec<_> = DEFAULTS.into_iter().chain(self.relayed()).collect();
        let program = Platform::start_scheduler(&self.platform, name, &env).unwrap();
        let answers = async || program.health_address();
        self.platform.eventually("it answers", FINAL_TIMEOUT, answers).await;
        self.add(name, program);
    }
}

//! URLs: of the servers, of a watcher outside, of a collector of traces.

use std::fmt;

use sexton_model::target_url::http_url;
use url::Url;

use super::Rule;
use crate::settings::server_url::{ServerKind, ServerUrl};

/// The URL of a server.
pub(crate) struct Server(pub(crate) ServerKind);

impl Rule for Server {
    type Value = ServerUrl;

    fn parse(&self, text: &str) -> Result<ServerUrl, String> {
        ServerUrl::parse(self.0, text).map_err(|error| error.to_string())
    }

    fn allowed(&self) -> String {
        match self.0 {
            ServerKind::Postgres => "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
            ServerKind::Amqp => "amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps:// for TLS",
        }
        .to_owned()
    }
}

/// The URL of an outside watcher.
pub(crate) struct Watcher;

impl Rule for Watcher {
    type Value = WatcherUrl;

    fn parse(&self, text: &str) -> Result<WatcherUrl, String> {
        // A parser's message may repeat a part of the URL.
        let url = http_url(text).map_err(|_| "not the URL of an HTTP server".to_owned())?;
        Ok(WatcherUrl(url))
    }

    fn allowed(&self) -> String {
        "https://HOST/PATH, or http://".to_owned()
    }
}

/// The URL of an outside watcher. It is all that a ping needs, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WatcherUrl(Url);

impl WatcherUrl {
    /// Returns the URL. Pass it only to the client that pings.
    pub const fn expose(&self) -> &Url {
        &self.0
    }
}

impl fmt::Debug for WatcherUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatcherUrl(…)")
    }
}

/// The URL of a collector of traces.
pub(crate) struct CollectorUrl;

impl Rule for CollectorUrl {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        let url = Url::parse(text).map_err(|error| format!("not a URL ({error})"))?;
        if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
            return Err("neither http:// nor https:// and a host".to_owned());
        }
        // Log lines show it, and grpc has paths of its own.
        if url.username() != "" || url.password().is_some() {
            return Err("no place for a password: use OTEL_EXPORTER_OTLP_HEADERS".to_owned());
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err("more than a host and a port".to_owned());
        }
        Ok(text.to_owned())
    }

    fn allowed(&self) -> String {
        "http://HOST:PORT, or https:// for TLS".to_owned()
    }
}

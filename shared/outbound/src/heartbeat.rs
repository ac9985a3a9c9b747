//! Pings of outside watchers: heartbeats of jobs, and the dead man's switch.

use chrono::{DateTime, Utc};
use sexton_model::heartbeat::{HeartbeatMessage, HeartbeatUrl, JobHeartbeat};
use sexton_model::target_url::http_url;
use url::Url;

use crate::channel::send::{SendError, Sender};

impl Sender {
    /// Sends a heartbeat; `now` is the instant of the try.
    ///
    /// # Errors
    ///
    /// [`SendError`]. The receiver may have it all the same.
    ///
    /// # Cancellation
    ///
    /// Dropping the future closes the connection.
    pub async fn send_heartbeat(
        &self,
        settings: &JobHeartbeat,
        message: &HeartbeatMessage,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let mut known = Vec::new();
        let sending = async {
            let text = match &settings.url {
                HeartbeatUrl::Plain(url) => url.clone(),
                HeartbeatUrl::Secret(reference) => {
                    self.read(Some(reference), &mut known).await?.unwrap_or_default()
                }
            };
            let url = message.url(&checked(&text)?);
            let request = self.post("text/plain", url, message.body(), settings.allow_private);
            self.request(request, now).await
        };
        let sent = self.limited(sending).await;
        Self::without_secrets(sent, &known)
    }

    /// Pings an address that the operator of this process has chosen, so it may be a private one. Errors do not repeat it.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub async fn ping(&self, url: &Url, now: DateTime<Utc>) -> Result<(), SendError> {
        let body = "sexton: the platform is well\n".to_owned();
        let sent =
            self.limited(self.request(self.post("text/plain", url.clone(), body, true), now)).await;
        sent.map_err(|error| {
            let message = error.message.replace(url.as_str(), "…");
            SendError { message, ..error }
        })
    }
}

fn checked(text: &str) -> Result<Url, SendError> {
    // A parser's message may repeat a part of the URL, which may be a secret.
    http_url(text.trim())
        .map_err(|_| SendError::refused("the heartbeat's URL is none of an HTTP server"))
}

//! Runs a task as a mail, handed to a mail server over SMTP.
//!
//! # What is sent
//!
//! A mail of plain text. `to`, `subject` and `body` are templates (`{{ params.to }}`) over the params
//! and what describes the execution; a name that is not there fails the attempt for good. The
//! `Message-ID` is made of the idempotency key: whoever receives a mail twice, because an answer was
//! lost, can tell. What would begin another header is refused.
//!
//! # To whom
//!
//! `smtps://` is encrypted from the beginning. With `smtp://` the connection is encrypted if the server
//! offers it; user and password are sent over an encrypted connection or not at all.
//!
//! # What is answered
//!
//! Accepted: done. A reply of 4xx: tried again. A reply of 5xx: trying again cannot help. A server that
//! hangs is left at the timeout, and so it is when the attempt is stopped; there is no task in the
//! background and no pool, and the connection ends with the attempt.

mod message;
mod smtp_session;
mod smtp_stream;

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection as Smtp, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use rustls::ClientConfig;
use tokio::time::timeout;

use self::smtp_session::send_mail;
use self::smtp_stream::{ConnectError, SmtpStream};
use crate::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};
use crate::secret::{SECRET_MISSING, SecretRef, SecretSource};
use crate::tls;

pub(crate) use self::message::check_template;
pub use self::message::{BODY_MAX_BYTES, RECIPIENTS_MAX, SUBJECT_MAX_BYTES};

/// How long the server may take to say goodbye; the mail is its own by then.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A mail, as the catalogue has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailTask {
    /// Who takes the mail.
    pub server: SmtpServer,
    /// Whose mail it is.
    pub from: Mailbox,
    /// Template of the recipients, separated by commas.
    pub to: String,
    /// Template of the subject.
    pub subject: String,
    /// Template of the body.
    pub body: String,
    /// User and password for the server.
    pub credentials: Option<(String, SecretRef)>,
    /// The longest it may take.
    pub timeout: Duration,
}

/// A mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Encrypted from the beginning.
    pub smtps: bool,
}

/// What all mails of a worker share.
pub struct EmailHost {
    secrets: SecretSource,
    clock: WallClock,
    tls: OnceLock<Arc<ClientConfig>>,
}

impl EmailHost {
    /// A host whose mails find their secrets in `secrets` and are dated by `clock`.
    pub fn new(secrets: SecretSource, clock: WallClock) -> Self {
        Self { secrets, clock, tls: OnceLock::new() }
    }
}

/// Runs one task type as a mail.
pub struct EmailExecutor {
    host: Arc<EmailHost>,
    spec: EmailTask,
    /// For a connection that is encrypted on the way.
    upgrade: OnceLock<TlsParameters>,
}

impl EmailExecutor {
    /// An executor of `spec`.
    pub fn new(host: Arc<EmailHost>, spec: EmailTask) -> Self {
        Self { host, spec, upgrade: OnceLock::new() }
    }

    /// Sends the mail; the connection, over which nothing more is to be said than goodbye.
    async fn send(&self, task: &TaskRun, recorder: &Recorder) -> Result<Smtp, Outcome> {
        let mail = message::message(&self.spec, task, (self.host.clock)())
            .map_err(|(class, message)| Outcome::Permanent { class: class.to_owned(), message })?;
        let credentials = match &self.spec.credentials {
            None => None,
            Some((user, password)) => match self.host.secrets.read(password).await {
                Ok(password) => {
                    recorder.mask([password.expose()]);
                    Some(Credentials::new(user.clone(), password.expose().to_owned()))
                }
                Err(missing) => return Err(failed(SECRET_MISSING, missing.to_string())),
            },
        };
        let (reply, connection) = self.deliver(&mail, credentials).await?;
        let said = reply.first_line().unwrap_or_default();
        let line = format!("{} {said}\n", reply.code());
        recorder.push(Stream::Stdout, (self.host.clock)(), line.as_bytes());
        Ok(connection)
    }

    async fn deliver(
        &self,
        mail: &Message,
        credentials: Option<Credentials>,
    ) -> Result<(Response, Smtp), Outcome> {
        let SmtpServer { host, port, smtps } = &self.spec.server;
        let client = if *smtps { Some(tls::shared_client(&self.host.tls).await) } else { None };
        let wire = SmtpStream::connect(host, *port, client).await.map_err(|error| match error {
            ConnectError::Unreachable(error) => {
                failed("smtp_unreachable", format!("cannot connect to {host}:{port}: {error}"))
            }
            ConnectError::Tls(error) => not_encrypted(host, &error),
        })?;
        let hello = client_id();
        let mut connection = Smtp::connect_with_transport(Box::new(wire), &hello)
            .await
            .map_err(|error| smtp_outcome(&error))?;
        let mut encrypted = *smtps;
        if !encrypted && connection.can_starttls() {
            let parameters = self.upgrade().await?;
            let upgraded = connection.starttls(parameters, &hello).await;
            upgraded.map_err(|error| match error.status() {
                // Refused in words, and not by its certificate.
                Some(_) => smtp_outcome(&error),
                None => not_encrypted(host, &error),
            })?;
            encrypted = true;
        }
        if let Some(credentials) = credentials {
            if !encrypted {
                let message = format!(
                    "{host} offers no encryption, and the password is not sent without: use smtps://"
                );
                return Err(Outcome::Permanent { class: "smtp_unencrypted".to_owned(), message });
            }
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection
                .auth(&mechanisms, &credentials)
                .await
                .map_err(|error| smtp_outcome(&error))?;
        }
        let reply = send_mail(&mut connection, mail).await?;
        Ok((reply, connection))
    }

    async fn upgrade(&self) -> Result<TlsParameters, Outcome> {
        if let Some(parameters) = self.upgrade.get() {
            return Ok(parameters.clone());
        }
        let host = &self.spec.server.host;
        let name = host.clone();
        // It reads the system's roots, as `tls::shared_client` does.
        let made = tokio::task::spawn_blocking(move || TlsParameters::new_rustls(name)).await;
        let made = made.map_err(|error| not_encrypted(host, &error))?;
        let made = made.map_err(|error| not_encrypted(host, &error))?;
        Ok(self.upgrade.get_or_init(|| made).clone())
    }
}

#[async_trait]
impl Executor for EmailExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let recorder = control.output().clone();
        let limit = task.timeout.min(self.spec.timeout);
        let sent = tokio::select! {
            biased;
            // First: a mail that was accepted is not sent again because the time was over, too.
            sent = self.send(task, &recorder) => sent,
            outcome = wait_for_cancellation(&mut control, limit) => Err(outcome),
        };
        let outcome = match sent {
            Ok(mut connection) => {
                // The mail is the server's, and nothing is imposed on it any more.
                let _ = timeout(QUIT_TIMEOUT, connection.quit()).await;
                Outcome::Succeeded
            }
            Err(outcome) => outcome,
        };
        TaskEnd { output: recorder.finish(), ..TaskEnd::new(outcome) }
    }
}

fn failed(class: &str, message: String) -> Outcome {
    Outcome::Failed { class: class.to_owned(), message }
}

fn not_encrypted(host: &str, error: &(dyn Error + 'static)) -> Outcome {
    let advice = tls::advice(error);
    failed("smtp_tls", format!("no TLS with {host}: {}{advice}", chain(error)))
}

fn unsupported(message: String) -> Outcome {
    Outcome::Permanent { class: "smtp_unsupported".to_owned(), message }
}

/// What an error of the conversation means.
fn smtp_outcome(error: &SmtpError) -> Outcome {
    let message = chain(error);
    let class = error.status().map(|status| format!("smtp_{status}"));
    match class {
        Some(class) if error.is_permanent() => Outcome::Permanent { class, message },
        Some(class) => Outcome::Retry { class, message, after: None },
        None if error.is_tls() => failed("smtp_tls", message),
        // The server lacks what this mail needs.
        None if error.is_client() => unsupported(message),
        None => failed("smtp_broken", message),
    }
}

/// An error and its causes.
fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !said.contains(&next) {
            said = format!("{said}: {next}");
        }
        cause = error.source();
    }
    said
}

/// How this host calls itself.
fn client_id() -> ClientId {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(usable) {
        ClientId::Domain(name)
    } else {
        ClientId::default()
    }
}

#[cfg(test)]
mod tests;

//! Runs a task as a mail, sent to a mail server over SMTP.
//!
//! # The mail
//!
//! A mail of plain text. `to`, `subject` and `body` are templates (`{{ params.to }}`) over the params and the
//! description of the execution; an undefined name fails the attempt permanently. The `Message-ID` is derived
//! from the idempotency key: a recipient who gets a mail twice, because a reply was lost, can recognise that.
//! Text that would begin another header is refused.
//!
//! # The reply
//!
//! Accepted: success. A reply of 4xx: retried. A reply of 5xx: permanent. The connection ends with the attempt,
//! so a server that hangs costs no more than the timeout, and a stop ends it at once: see
//! [`sexton_outbound::mail`].

mod template;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sexton_outbound::mail::{
    AcceptedMail, Login, MailClient, MailError, Mailbox, SmtpServer, compose,
};
use sexton_tls::TlsClient;

pub(crate) use self::template::check_template;
use self::template::{TemplateError, render};
use crate::executor::SECRET_MISSING;
use crate::executor::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};
use sexton_outbound::secret::{SecretRef, SecretSource};

/// A mail as the catalogue defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailTask {
    /// The mail server.
    pub server: SmtpServer,
    /// The sender.
    pub from: Mailbox,
    /// Template of the recipients, separated by commas.
    pub to: String,
    /// Template of the subject.
    pub subject: String,
    /// Template of the body.
    pub body: String,
    /// User and password for the server.
    pub credentials: Option<(String, SecretRef)>,
    /// Time limit of the sending.
    pub timeout: Duration,
}

/// State that all mails of a worker share.
pub struct EmailHost {
    secrets: SecretSource,
    clock: WallClock,
    tls: TlsClient,
}

impl EmailHost {
    /// Creates a host whose mails read their secrets from `secrets`, are dated by `clock`, and go to servers
    /// that `tls` trusts.
    pub const fn new(secrets: SecretSource, clock: WallClock, tls: TlsClient) -> Self {
        Self { secrets, clock, tls }
    }
}

/// The executor of a task type that is a mail.
pub struct EmailExecutor {
    host: Arc<EmailHost>,
    spec: EmailTask,
    client: MailClient,
}

impl EmailExecutor {
    /// Creates an executor of `spec`.
    pub fn new(host: Arc<EmailHost>, spec: EmailTask) -> Self {
        let client = MailClient::new(spec.server.clone(), host.tls.clone());
        Self { host, spec, client }
    }

    /// Sends the mail.
    async fn send(
        &self,
        task: &TaskRun,
        limit: Duration,
        recorder: &Recorder,
    ) -> Result<AcceptedMail, Outcome> {
        let now = (self.host.clock)();
        let text = render(&self.spec, task).map_err(|error| match error {
            TemplateError::Render(message) => permanent("email_template", message),
            TemplateError::Invalid(invalid) => permanent("email_invalid", invalid.to_string()),
        })?;
        let mail = compose(&self.spec.from, text, now, &task.idempotency_key)
            .map_err(|invalid| permanent("email_invalid", invalid.to_string()))?;
        let login = match &self.spec.credentials {
            None => None,
            Some((user, password)) => match self.host.secrets.read(password).await {
                Ok(password) => {
                    recorder.mask([password.expose()]);
                    let password = password.expose().to_owned();
                    Some(Login { user: user.clone(), password })
                }
                Err(missing) => return Err(failed(SECRET_MISSING, missing.to_string())),
            },
        };
        let accepted = self.client.send(&mail, login, limit).await.map_err(outcome)?;
        let line = format!("{}\n", accepted.reply());
        recorder.push(Stream::Stdout, (self.host.clock)(), line.as_bytes());
        Ok(accepted)
    }
}

#[async_trait]
impl Executor for EmailExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let recorder = control.output().clone();
        // The timeout also covers the reading of the password before the mail.
        let limit = task.timeout.min(self.spec.timeout);
        let sent = tokio::select! {
            biased;
            // First branch: an accepted mail counts even if the time is over as well.
            sent = self.send(task, limit, &recorder) => sent,
            outcome = wait_for_cancellation(&mut control, limit) => Err(outcome),
        };
        let outcome = match sent {
            Ok(accepted) => {
                // The server has the mail, and nothing can cancel it now.
                accepted.quit().await;
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

fn permanent(class: &str, message: String) -> Outcome {
    Outcome::Permanent { class: class.to_owned(), message }
}

/// Translates a failed sending into the task's outcome.
fn outcome(error: MailError) -> Outcome {
    match error {
        MailError::Unreachable(message) => failed("smtp_unreachable", message),
        MailError::Tls(message) => failed("smtp_tls", message),
        MailError::Unencrypted(message) => permanent("smtp_unencrypted", message),
        MailError::Unsupported(message) => permanent("smtp_unsupported", message),
        MailError::Refused { code, is_permanent: true, message } => {
            permanent(&format!("smtp_{code}"), message)
        }
        MailError::Refused { code, is_permanent: false, message } => {
            Outcome::Retry { class: format!("smtp_{code}"), message, after: None }
        }
        MailError::Broken(message) => failed("smtp_broken", message),
        MailError::TimedOut(_) => Outcome::TimedOut,
    }
}

#[cfg(test)]
mod tests;

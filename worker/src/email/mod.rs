//! Runs a task as a mail, handed to a mail server over SMTP.
//!
//! # What is sent
//!
//! A mail of plain text. `to`, `subject` and `body` are templates (`{{ params.to }}`) over the params
//! and what describes the execution; a name that is not there fails the attempt for good. The
//! `Message-ID` is made of the idempotency key: a recipient who gets a mail twice, because a reply was
//! lost, can tell. What would begin another header is refused.
//!
//! # What is answered
//!
//! Accepted: done. A reply of 4xx: tried again. A reply of 5xx: trying again cannot help. A server that
//! hangs is left at the timeout, and so it is when the attempt is stopped; the connection ends with the attempt:
//! see [`sexton_outbound::mail`].

mod template;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sexton_outbound::mail::{
    AcceptedMail, Login, MailClient, MailError, Mailbox, SmtpServer, compose,
};
use sexton_outbound::tls::TlsClient;

pub(crate) use self::template::check_template;
use self::template::{TemplateError, render};
use crate::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};
use crate::secret::{SECRET_MISSING, SecretRef, SecretSource};

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

/// What all mails of a worker share.
pub struct EmailHost {
    secrets: SecretSource,
    clock: WallClock,
    tls: TlsClient,
}

impl EmailHost {
    /// A host whose mails find their secrets in `secrets`, are dated by `clock`, and go to servers that `tls`
    /// trusts.
    pub const fn new(secrets: SecretSource, clock: WallClock, tls: TlsClient) -> Self {
        Self { secrets, clock, tls }
    }
}

/// Runs one task type as a mail.
pub struct EmailExecutor {
    host: Arc<EmailHost>,
    spec: EmailTask,
    client: MailClient,
}

impl EmailExecutor {
    /// An executor of `spec`.
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
        // Also for what comes before the mail: the reading of its password.
        let limit = task.timeout.min(self.spec.timeout);
        let sent = tokio::select! {
            biased;
            // First: a mail that was accepted is not sent again because the time was over, too.
            sent = self.send(task, limit, &recorder) => sent,
            outcome = wait_for_cancellation(&mut control, limit) => Err(outcome),
        };
        let outcome = match sent {
            Ok(accepted) => {
                // The server has the mail, and nothing cancels it any more.
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

/// What it means for the task that its mail was not accepted.
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

//! Sends one mail of plain text to a mail server over SMTP.
//!
//! [`compose`] makes the mail and refuses text that would begin another header; [`MailClient::send`] sends it
//! within a time limit, over a new connection.
//!
//! A connection to an `smtps://` server uses TLS from the beginning. A connection to another server is
//! encrypted if the server offers it; user and password are sent over an encrypted connection or not at all.
//! The server's address is not checked: its name comes from the deployer, as that of a database does.

mod message;
mod session;
mod stream;

use std::error::Error;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection as Smtp, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use sexton_tls::TlsClient;
use tokio::time::timeout;

pub use lettre::Message;
pub use lettre::message::Mailbox;
pub use sexton_model::target_url::SmtpServer;

pub use self::message::{
    BODY_MAX_BYTES, InvalidMail, MailKeys, MailText, RECIPIENTS_MAX, SUBJECT_MAX_BYTES,
    TO_MAX_BYTES, compose, compose_automatic,
};
use self::session::send_mail;
use self::stream::{ConnectError, SmtpStream};
use crate::error_chain::chain;

/// How long the server may take to reply to QUIT; it has accepted the mail by then.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// User and password for a mail server. Never printed.
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Why a mail was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The server's address does not accept a connection.
    #[error("{0}")]
    Unreachable(String),
    /// The server has no valid certificate for its name, or does not speak TLS.
    #[error("{0}")]
    Tls(String),
    /// The server offers no encryption, so the password was not sent.
    #[error("{0}")]
    Unencrypted(String),
    /// The server lacks an extension that this mail needs. Sending it again cannot help.
    #[error("{0}")]
    Unsupported(String),
    /// The server refused the mail.
    #[error("{message}")]
    Refused {
        /// The reply's code, such as 450.
        code: u16,
        /// Whether sending it again cannot help: a reply of 5xx.
        is_permanent: bool,
        /// The server's message.
        message: String,
    },
    /// The conversation broke off.
    #[error("{0}")]
    Broken(String),
    /// The time limit is exceeded.
    #[error("the mail server did not take the mail within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Sends mails to one server.
pub struct MailClient {
    server: SmtpServer,
    tls: TlsClient,
    /// TLS parameters for a connection that is encrypted after its beginning.
    upgrade: OnceLock<TlsParameters>,
}

/// A mail that the server has accepted. Dropping it closes the connection.
pub struct AcceptedMail {
    reply: String,
    connection: Smtp,
}

impl AcceptedMail {
    /// Returns the server's reply in one line, such as `250 queued as 77`.
    pub fn reply(&self) -> &str {
        &self.reply
    }

    /// Ends the conversation with QUIT, within a second.
    pub async fn quit(mut self) {
        let _ = timeout(QUIT_TIMEOUT, self.connection.quit()).await;
    }
}

impl MailClient {
    /// Creates a client of `server`, whose certificate is checked by the roots of `tls`; by the system's, if
    /// the server encrypts after the beginning of the connection.
    pub const fn new(server: SmtpServer, tls: TlsClient) -> Self {
        Self { server, tls, upgrade: OnceLock::new() }
    }

    /// Sends a mail within `limit`.
    ///
    /// # Errors
    ///
    /// [`MailError`]. After [`Broken`](MailError::Broken) and [`TimedOut`](MailError::TimedOut) the server may
    /// still have accepted the mail; the mail's `Message-ID` lets the recipient recognise a second copy.
    ///
    /// # Cancellation
    ///
    /// Dropping the future closes the connection, as a crash does; the server may have accepted the mail.
    pub async fn send(
        &self,
        mail: &Message,
        login: Option<Login>,
        limit: Duration,
    ) -> Result<AcceptedMail, MailError> {
        timeout(limit, self.send_unlimited(mail, login))
            .await
            .unwrap_or(Err(MailError::TimedOut(limit)))
    }

    async fn send_unlimited(
        &self,
        mail: &Message,
        login: Option<Login>,
    ) -> Result<AcceptedMail, MailError> {
        let (mut connection, is_encrypted) = self.connect().await?;
        if let Some(Login { user, password }) = login {
            if !is_encrypted {
                return Err(MailError::Unencrypted(format!(
                    "{} offers no encryption, and the password is not sent without: use smtps://",
                    self.server.host
                )));
            }
            let credentials = Credentials::new(user, password);
            connection
                .auth(&[Mechanism::Plain, Mechanism::Login], &credentials)
                .await
                .map_err(|error| MailError::of(&error))?;
        }
        let reply = send_mail(&mut connection, mail).await?;
        let reply = format!("{} {}", reply.code(), reply.first_line().unwrap_or_default());
        Ok(AcceptedMail { reply, connection })
    }

    /// Connects and greets; also returns whether the connection is encrypted.
    async fn connect(&self) -> Result<(Smtp, bool), MailError> {
        let SmtpServer { host, port, smtps } = &self.server;
        let tls = smtps.then_some(&self.tls);
        let stream = SmtpStream::connect(host, *port, tls).await.map_err(|error| match error {
            ConnectError::Unreachable(error) => {
                MailError::Unreachable(format!("cannot connect to {host}:{port}: {error}"))
            }
            ConnectError::Tls(error) => not_encrypted(host, &error),
        })?;
        let hello = client_id();
        let mut connection = Smtp::connect_with_transport(Box::new(stream), &hello)
            .await
            .map_err(|error| MailError::of(&error))?;
        if *smtps || !connection.can_starttls() {
            return Ok((connection, *smtps));
        }
        let parameters = self.upgrade().await?;
        connection.starttls(parameters, &hello).await.map_err(|error| match error.status() {
            // The server replied with a refusal; its certificate is not the cause.
            Some(_) => MailError::of(&error),
            None => not_encrypted(host, &error),
        })?;
        Ok((connection, true))
    }

    async fn upgrade(&self) -> Result<TlsParameters, MailError> {
        if let Some(parameters) = self.upgrade.get() {
            return Ok(parameters.clone());
        }
        let host = &self.server.host;
        let name = host.clone();
        // This reads the system's roots, which may wait for a disk.
        let parameters = tokio::task::spawn_blocking(move || TlsParameters::new_rustls(name)).await;
        let parameters = parameters.map_err(|error| not_encrypted(host, &error))?;
        let parameters = parameters.map_err(|error| not_encrypted(host, &error))?;
        Ok(self.upgrade.get_or_init(|| parameters).clone())
    }
}

impl MailError {
    /// Translates an error of the conversation.
    fn of(error: &SmtpError) -> Self {
        let message = chain(error);
        match error.status() {
            Some(code) => {
                Self::Refused { code: code.into(), is_permanent: error.is_permanent(), message }
            }
            None if error.is_tls() => Self::Tls(message),
            // The server lacks an extension that this mail needs.
            None if error.is_client() => Self::Unsupported(message),
            None => Self::Broken(message),
        }
    }
}

impl fmt::Debug for AcceptedMail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AcceptedMail({:?})", self.reply)
    }
}

fn not_encrypted(host: &str, error: &(dyn Error + 'static)) -> MailError {
    let advice = sexton_tls::advice(error);
    MailError::Tls(format!("no TLS with {host}: {}{advice}", chain(error)))
}

/// Returns this host's name, for the greeting.
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

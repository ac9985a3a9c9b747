//! Sends one mail, command by command.
//!
//! The library's own method sends QUIT after a refusal and waits for the reply without a limit: a server that
//! does not reply to QUIT would turn its refusal into a timeout.

use lettre::transport::smtp::client::AsyncSmtpConnection as Smtp;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::response::Response;
use lettre::{Address, Message};

use super::MailError;

/// Sends the mail; returns the reply with which the server accepted it.
pub(super) async fn send_mail(
    connection: &mut Smtp,
    mail: &Message,
) -> Result<Response, MailError> {
    let (envelope, text) = (mail.envelope(), mail.formatted());
    let lacks = |extension| !connection.server_info().supports_feature(extension);
    let mut options = Vec::new();
    let plain = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !envelope.from().into_iter().chain(envelope.to()).all(plain) {
        if lacks(Extension::SmtpUtfEight) {
            let reason = "the server takes no addresses that are not ASCII (SMTPUTF8)";
            return Err(MailError::Unsupported(reason.to_owned()));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !text.is_ascii() {
        if lacks(Extension::EightBitMime) {
            let reason = "the server takes no mail that is not ASCII (8BITMIME)";
            return Err(MailError::Unsupported(reason.to_owned()));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    let from = Mail::new(envelope.from().cloned(), options);
    connection.command(from).await.map_err(|error| MailError::of(&error))?;
    for to in envelope.to() {
        connection
            .command(Rcpt::new(to.clone(), Vec::new()))
            .await
            .map_err(|error| MailError::of(&error))?;
    }
    connection.command(Data).await.map_err(|error| MailError::of(&error))?;
    connection.message(&text).await.map_err(|error| MailError::of(&error))
}

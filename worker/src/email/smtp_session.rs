//! Handing over one mail, command by command.
//!
//! The library's own way says goodbye after a refusal and waits for the answer without limit: a server
//! that is deaf to that would turn its refusal into a timeout.

use lettre::transport::smtp::client::AsyncSmtpConnection as Smtp;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::response::Response;
use lettre::{Address, Message};

use super::{smtp_outcome, unsupported};
use crate::executor::Outcome;

/// Hands the mail over; the server's reply, by which the mail is its own.
pub(super) async fn send_mail(connection: &mut Smtp, mail: &Message) -> Result<Response, Outcome> {
    let (envelope, text) = (mail.envelope(), mail.formatted());
    let lacks = |extension| !connection.server_info().supports_feature(extension);
    let mut options = Vec::new();
    let plain = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !envelope.from().into_iter().chain(envelope.to()).all(plain) {
        if lacks(Extension::SmtpUtfEight) {
            let said = "the server takes no addresses that are not ASCII (SMTPUTF8)";
            return Err(unsupported(said.to_owned()));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !text.is_ascii() {
        if lacks(Extension::EightBitMime) {
            let said = "the server takes no mail that is not ASCII (8BITMIME)";
            return Err(unsupported(said.to_owned()));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    let from = Mail::new(envelope.from().cloned(), options);
    connection.command(from).await.map_err(|error| smtp_outcome(&error))?;
    for to in envelope.to() {
        connection
            .command(Rcpt::new(to.clone(), Vec::new()))
            .await
            .map_err(|error| smtp_outcome(&error))?;
    }
    connection.command(Data).await.map_err(|error| smtp_outcome(&error))?;
    connection.message(&text).await.map_err(|error| smtp_outcome(&error))
}

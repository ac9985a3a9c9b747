//! URLs of the systems to which requests and mails go, checked.

use url::Url;

/// A mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the connection is encrypted from the beginning.
    pub smtps: bool,
}

/// Parses the URL of an HTTP server.
///
/// # Errors
///
/// Why it is no target of a request, to be read after the field's name.
pub fn http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err("must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        let message = "holds a user or a password: hand them over in a header, as a secret";
        return Err(message.to_owned());
    }
    if url.fragment().is_some() {
        return Err("has a fragment, which is not sent: leave out what follows the #".to_owned());
    }
    if url.port() == Some(0) {
        return Err("names the port 0, at which nobody answers".to_owned());
    }
    Ok(url)
}

/// Parses the URL of a mail server, `smtp://host:587` or `smtps://host:465`.
///
/// # Errors
///
/// Why it is none, to be read after the field's name.
pub fn smtp_server(text: &str) -> Result<SmtpServer, &'static str> {
    let shape = "must be smtp://host:587 or smtps://host:465, and nothing behind it";
    let url = Url::parse(text).map_err(|_| shape)?;
    let smtps = match url.scheme() {
        "smtp" => false,
        "smtps" => true,
        _ => return Err(shape),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user or a password: they have keys of their own");
    }
    let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    let host = url.host_str().filter(|host| !host.is_empty() && bare).ok_or(shape)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port().unwrap_or(if smtps { 465 } else { 587 });
    if port == 0 { Err(shape) } else { Ok(SmtpServer { host, port, smtps }) }
}

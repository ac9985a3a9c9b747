//! The URL of a server, which protects the password in it.
//!
//! `Debug` and `Display` show scheme, user, host, port and path. Only [`ServerUrl::expose`] shows the password and
//! the query (which may contain one too). No error repeats any of the text: an invalid URL may have its password
//! anywhere.

use std::fmt::{self, Write as _};

use url::Url;

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 4096;

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// `postgres://` or `postgresql://`.
    Postgres,
    /// `amqp://` or `amqps://`.
    Amqp,
}

impl ServerKind {
    fn schemes(self) -> [&'static str; 2] {
        match self {
            Self::Postgres => ["postgres", "postgresql"],
            Self::Amqp => ["amqp", "amqps"],
        }
    }
}

/// A server's URL, checked for form only.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    whole: String,
    shown: String,
}

/// Why a text is no URL of such a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerUrlError {
    /// It does not parse as a URL.
    #[error(
        "not a URL; a special character in the password must be percent-encoded (`@` is %40, \
         `/` is %2F, `#` is %23, `?` is %3F, `%` is %25)"
    )]
    NotUrl,
    /// It has another scheme.
    #[error("has another scheme, it must begin with {0}:// or {1}://")]
    Scheme(&'static str, &'static str),
    /// A password's special character seems to have ended the address early.
    #[error(
        "a special character in the user name or password must be percent-encoded (`@` is %40, \
         `/` is %2F, `#` is %23, `?` is %3F, `%` is %25)"
    )]
    Unescaped,
    /// It has no host.
    #[error("names no host")]
    NoHost,
    /// It exceeds the maximum length.
    #[error("is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
}

impl ServerUrl {
    /// Checks the form of `text`; connects nowhere.
    ///
    /// # Errors
    ///
    /// [`ServerUrlError`], which repeats nothing of `text`.
    pub fn parse(kind: ServerKind, text: &str) -> Result<Self, ServerUrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(ServerUrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| ServerUrlError::NotUrl)?;
        let [first, second] = kind.schemes();
        if url.scheme() != first && url.scheme() != second {
            return Err(ServerUrlError::Scheme(first, second));
        }
        // `user:12/3@host` parses as host `user`, port 12: an `@` or `#` after the address is nearly always a part of
        // a password, and would be shown as a path.
        let behind = [Some(url.path()), url.query()];
        if url.fragment().is_some() || behind.iter().flatten().any(|part| part.contains('@')) {
            return Err(ServerUrlError::Unescaped);
        }
        if !text[url.scheme().len()..].starts_with("://") {
            return Err(ServerUrlError::NotUrl);
        }
        // PostgreSQL may be reached by a local socket; a broker only by its host.
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        if kind == ServerKind::Amqp && !has_host {
            return Err(ServerUrlError::NoHost);
        }
        Ok(Self { whole: text.to_owned(), shown: without_secrets(&url) })
    }

    /// Returns the whole URL, including the password, for the library that connects. Never for a message.
    pub fn expose(&self) -> &str {
        &self.whole
    }
}

fn without_secrets(url: &Url) -> String {
    let mut shown = format!("{}://", url.scheme());
    if !url.username().is_empty() || url.password().is_some() {
        shown.push_str(url.username());
        shown.push_str(if url.password().is_some() { ":***@" } else { "@" });
    }
    shown.push_str(url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        let _ = write!(shown, ":{port}");
    }
    shown.push_str(url.path());
    shown
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ServerKind, text: &str) -> String {
        ServerUrl::parse(kind, text).unwrap().to_string()
    }

    #[test]
    fn a_password_is_exposed_on_request_and_shown_nowhere_else() {
        let text = "postgres://ann:s%40cret@db.internal:5433/sexton?password=s%40cret";
        let url = ServerUrl::parse(ServerKind::Postgres, text).unwrap();
        assert_eq!(url.expose(), text);
        assert_eq!(url.to_string(), "postgres://ann:***@db.internal:5433/sexton");
        assert_eq!(format!("{url:?}"), "ServerUrl(postgres://ann:***@db.internal:5433/sexton)");
    }

    #[test]
    fn the_usual_forms_are_accepted() {
        use ServerKind::{Amqp, Postgres};
        for (kind, text, want) in [
            (Amqp, "amqp://guest:guest@127.0.0.1:5672/%2f", "amqp://guest:***@127.0.0.1:5672/%2f"),
            (Amqp, "amqps://rabbit.internal", "amqps://rabbit.internal"),
            (Amqp, "amqp://u@[::1]:5672", "amqp://u@[::1]:5672"),
            (Postgres, "postgresql://localhost/sexton", "postgresql://localhost/sexton"),
            (Postgres, "postgres:///sexton?host=/run/postgresql", "postgres:///sexton"),
            (
                Postgres,
                "postgres://%2Frun%2Fpostgresql/sexton",
                "postgres://%2Frun%2Fpostgresql/sexton",
            ),
        ] {
            assert_eq!(shown(kind, text), want);
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        use ServerKind::{Amqp, Postgres};
        for (kind, text, want) in [
            (Postgres, "hunter2", ServerUrlError::NotUrl),
            (Postgres, "postgres:u:hunter2", ServerUrlError::NotUrl),
            (Postgres, "postgres://u:hunter2#x@host/db", ServerUrlError::NotUrl),
            (Postgres, "postgres://u:12#hunter2@host/db", ServerUrlError::Unescaped),
            (Postgres, "postgres://u:12/hunter2@host/db", ServerUrlError::Unescaped),
            (Postgres, "postgres://u:12?hunter2@host/db", ServerUrlError::Unescaped),
            (Postgres, "mysql://u:hunter2@host", ServerUrlError::Scheme("postgres", "postgresql")),
            (Amqp, "postgres://u:hunter2@host", ServerUrlError::Scheme("amqp", "amqps")),
            (Amqp, "amqp:///hunter2", ServerUrlError::NoHost),
        ] {
            let error = ServerUrl::parse(kind, text).unwrap_err();
            assert_eq!(error, want, "{text}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}

//! The errors of providing servers, one variant per reaction of the person who reads it.

use std::path::PathBuf;

/// Why no servers could be provided, or why an action on a private one failed.
#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    /// No server and no way to start one: install something, or name servers.
    #[error(
        "no {missing} is installed, no Docker Compose engine runs, and packages cannot be \
         installed from here ({why_not_installed}): install PostgreSQL and RabbitMQ (on Debian or \
         Ubuntu `apt-get install postgresql rabbitmq-server`), or name servers in DATABASE_URL and \
         AMQP_URL"
    )]
    NothingToStart {
        /// The server that is missing.
        missing: &'static str,
        /// Why the distribution's packages could not be installed.
        why_not_installed: String,
    },

    /// A server named in the environment does not answer: start it, correct the variable, or unset
    /// it.
    #[error(
        "{variable} names a server that accepted no connection: {reason}; start it, correct \
         {variable}, or unset it to have a private one"
    )]
    NamedServerSilent {
        /// `DATABASE_URL` or `AMQP_URL`. The value is not repeated: it bears a password.
        variable: &'static str,
        /// How long the wait was, and the error of the last try.
        reason: String,
    },

    /// The named system cannot be used: build it anew, or unset the variable.
    #[error(
        "{variable} names {}, from which no server can be started: {reason}; \
         scripts/next-servers.sh builds one, and without {variable} this machine's servers are used",
        folder.display()
    )]
    UnusableRoot {
        /// The variable that names the folder.
        variable: &'static str,
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The running version differs from the one that the environment demands: correct the server's
    /// name, its start, or the variable.
    #[error("{variable} asks for {requested}, and what runs is {running}")]
    OtherVersion {
        /// The variable that demands it.
        variable: &'static str,
        /// Its part that does not fit.
        requested: String,
        /// The server and its version, as it says itself.
        running: String,
    },

    /// No program can run with a wrong clock: install the library, or name it.
    #[error(
        "there is no faketime/libfaketime.so.1 below {folder}, and it cannot be installed from here \
         ({why}): install libfaketime, or name its file in {variable}"
    )]
    NoFaketime {
        /// The folder that was searched.
        folder: &'static str,
        /// The variable that names it.
        variable: &'static str,
        /// Why the distribution's package could not be installed.
        why: String,
    },

    /// No connection pooler is installed: install it.
    #[error(
        "the program pgbouncer is not in PATH, and cannot be installed from here ({why}): install it"
    )]
    NoPgBouncer {
        /// Why the distribution's package could not be installed.
        why: String,
    },

    /// A private server was started and is not usable: its log says why.
    #[error("the private {server} did not get ready: {reason}; its log ends:\n{log_tail}")]
    NotReady {
        /// The server's name.
        server: &'static str,
        /// The error of the last try, or how the process ended.
        reason: String,
        /// The last lines of its log.
        log_tail: String,
    },

    /// A program failed.
    #[error("failed to {action}: {reason}")]
    Program {
        /// The action.
        action: String,
        /// The program's own message.
        reason: String,
    },

    /// A file operation failed.
    #[error("failed to {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With which path.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

impl ServersError {
    /// Wraps an error of the operating system with the action and the path.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    /// Whether the server lost the race for its port, so that another port is worth a try.
    pub(super) fn is_port_taken(&self) -> bool {
        const PORT_TAKEN_MESSAGES: [&str; 4] =
            ["address already in use", "eaddrinuse", "port is already allocated", "port_in_use"];
        let text = self.to_string().to_lowercase();
        PORT_TAKEN_MESSAGES.iter().any(|sign| text.contains(sign))
    }
}

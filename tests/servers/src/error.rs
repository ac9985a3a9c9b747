//! What can go wrong while servers are provided, one variant per reaction of the person who reads it.

use std::path::PathBuf;

/// Why no servers could be provided, or why a private one did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    /// Nothing to start from: install something, or name servers.
    #[error(
        "no {missing} is installed, no Docker Compose engine runs, and packages cannot be \
         installed from here ({why_not_installed}): install PostgreSQL and RabbitMQ (on Debian or \
         Ubuntu `apt-get install postgresql rabbitmq-server`), or name servers in DATABASE_URL and \
         AMQP_URL"
    )]
    NothingToStart {
        /// The server that is missing.
        missing: &'static str,
        /// What kept the distribution's packages from being installed.
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
        /// How long was waited and what the last try said.
        reason: String,
    },

    /// The system whose servers were asked for cannot be used: build it anew, or do not ask for it.
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

    /// Another version runs than the environment asks for: correct what starts or names the servers,
    /// or the variable.
    #[error("{variable} asks for {asked}, and what runs is {running}")]
    OtherVersion {
        /// The variable that asks.
        variable: &'static str,
        /// Its part that does not fit.
        asked: String,
        /// The server and its version, as it says itself.
        running: String,
    },

    /// Programs cannot be given wrong clocks: install the library, or name it.
    #[error(
        "there is no faketime/libfaketime.so.1 below {folder}, and it cannot be installed from here \
         ({why}): install libfaketime, or name its file in {variable}"
    )]
    NoFaketime {
        /// Where it was looked for.
        folder: &'static str,
        /// The variable that names it.
        variable: &'static str,
        /// What kept the distribution's package from being installed.
        why: String,
    },

    /// There is no connection pooler to put in front of a server: install it.
    #[error(
        "the program pgbouncer is not in PATH, and cannot be installed from here ({why}): install it"
    )]
    NoPgBouncer {
        /// What kept the distribution's package from being installed.
        why: String,
    },

    /// A private server was started and is not usable: its log says why.
    #[error("the private {server} did not get ready: {reason}; its log ends:\n{log_tail}")]
    NotReady {
        /// The server's name.
        server: &'static str,
        /// What the last try said, or how the process ended.
        reason: String,
        /// The last lines of its log.
        log_tail: String,
    },

    /// A program that was asked for something refused.
    #[error("failed to {action}: {reason}")]
    Program {
        /// What was asked for.
        action: String,
        /// The program's own words.
        reason: String,
    },

    /// The file system refused.
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
    /// Wraps an answer of the operating system with what was tried on which path.
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

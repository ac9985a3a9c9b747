//! The operator of an operation, for the audit.

use sexton_store::operator::AuditContext;

/// Who runs an operation, and from where. A note, not a proof: a role that may write to the database can write any
/// name.
///
/// A program that serves several people makes one for each request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The name in the audit: `<user>@<host>`.
    pub name: String,
    /// The host on which the operation runs.
    pub host: String,
    /// The process in which it runs.
    pub process_id: u32,
    /// The person's origin, if known: `ops1:4123 pts/0 ssh 10.1.2.3`. The connection that
    /// [`crate::connect::Connector`] opens carries it, so the audit records it with every action over that
    /// connection.
    pub origin: Option<String>,
    /// Whether a person waits for the answer.
    pub is_interactive: bool,
}

impl Actor {
    /// Returns the audit's description of an action: the name, and the given reason.
    pub fn because<'a>(&'a self, reason: Option<&'a str>) -> AuditContext<'a> {
        AuditContext { actor: &self.name, reason }
    }

    /// Returns `<host>:<process id>`, the form in which claiming processes name themselves.
    pub fn process(&self) -> String {
        format!("{}:{}", self.host, self.process_id)
    }

    /// Returns `<user>@<host>:<process id>`, which a triggered execution records as its caller.
    pub fn claimer(&self) -> String {
        format!("{}:{}", self.name, self.process_id)
    }
}

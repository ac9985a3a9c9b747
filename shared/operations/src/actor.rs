//! Who asks for an operation, for the audit.

use sexton_store::operator::AuditContext;

/// Who asks, and from where. A note, not a proof: a role that may write to the database can write any name.
///
/// A program that serves several people makes one for each request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// As the audit shows it: `<user>@<host>`.
    pub name: String,
    /// The host on which the operation runs.
    pub host: String,
    /// The process in which it runs.
    pub process_id: u32,
    /// Where the person sits, as far as it is known: `ops1:4123 pts/0 ssh 10.1.2.3`. The connection that
    /// [`crate::connect::Connector`] opens carries it, so every action over that connection is recorded with it.
    pub origin: Option<String>,
    /// Whether a person waits for the answer.
    pub is_interactive: bool,
}

impl Actor {
    /// What the audit records of an action: the name, and the reason that was given.
    pub fn because<'a>(&'a self, reason: Option<&'a str>) -> AuditContext<'a> {
        AuditContext { actor: &self.name, reason }
    }

    /// `<host>:<process id>`, as a process that claims firings names itself.
    pub fn process(&self) -> String {
        format!("{}:{}", self.host, self.process_id)
    }

    /// `<user>@<host>:<process id>`, by which a triggered execution says who asked for it.
    pub fn claimer(&self) -> String {
        format!("{}:{}", self.name, self.process_id)
    }
}

//! Approvals: actions of one person that wait for others.
//!
//! [`rules`] says which. Every operation that a rule may concern makes a [`proposal::Proposal`] of what it would do, and passes it to the
//! [`gate`], which either clears it or keeps it as a request; the functions that write need a `Clearance` of it, which nothing else makes. So no
//! command, route or page can forget it. [`crate::decisions`] approves requests, and carries them out.

pub mod gate;
pub mod proposal;
pub mod requests;
pub(crate) mod restricted;
pub mod rules;

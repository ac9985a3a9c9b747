//! Why an incident of the platform may be open.

use sexton_model::lint::Severity;
use sexton_operations::doctor::Code;

/// Findings that open an incident though the doctor only warns of them: firings or tickets do not go on, or the audit is not sealed.
pub(super) const ALARMING: [Code; 5] = [
    Code::TicketsUnpublished,
    Code::TicketsLost,
    Code::CatchUpHeld,
    Code::AuditUnsealed,
    Code::LeasesOverdue,
];

/// The cause of an incident of the platform. Nothing else opens one, so the documents can have a section for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlatformCause {
    /// What the doctor finds as well.
    Finding(Code),
    /// Too many failed executions wait for an operator.
    FailedQueueTooDeep,
    /// A failed execution waits for too long.
    FailedQueueTooOld,
    /// Checks expect pings, and no process accepts them.
    PingEndpointDown,
    /// Heartbeats of jobs do not arrive.
    HeartbeatsUndelivered,
}

impl PlatformCause {
    /// Returns all of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let is_alarming = |code: &Code| {
            code.entry().severity == Severity::Error
                || ALARMING.contains(code)
                || *code == Code::PoolWithoutWorkers
        };
        let findings = Code::ALL.iter().copied().filter(is_alarming).map(Self::Finding);
        findings.chain([
            Self::FailedQueueTooDeep,
            Self::FailedQueueTooOld,
            Self::PingEndpointDown,
            Self::HeartbeatsUndelivered,
        ])
    }

    /// Returns the incident's cause, as the database has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finding(code) => code.as_str(),
            Self::FailedQueueTooDeep => "failed_queue_too_deep",
            Self::FailedQueueTooOld => "failed_queue_too_old",
            Self::PingEndpointDown => "ping_endpoint_down",
            Self::HeartbeatsUndelivered => "heartbeats_undelivered",
        }
    }
}
